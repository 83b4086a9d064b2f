// The page: what was run, the legend, the tables, and each task with its charts and replays.

const mainColumns = ["return", "cost"];

const header = () => [
  el("h1", {}, data.title),
  ...data.tables.verdicts.map(([task, sentence]) =>
    el("p", { class: "verdict" }, data.tables.verdicts.length > 1 && el("b", {}, `${task}: `), sentence)),
  ...data.left_out.map((sentence) => el("p", { class: "note" }, sentence)),
  data.tasks.length > 1 && el("nav", { "aria-label": "tasks" }, data.tasks.map((task, k) =>
    el("a", { href: `#task-${k}` }, task.name))),
].filter(Boolean);

/** A button for every label that hides it; the bar stays visible. */
const legend = () => el("div", { class: "bar", role: "group", "aria-label": "algorithms shown in the charts" },
  labels.map((label) => {
    const chip = el("button", { class: "chip", type: "button", "aria-pressed": "true" },
      swatch(colourOf(label)), label);
    chip.addEventListener("click", () => {
      const isHidden = !shown.hidden.delete(label);
      if (isHidden) shown.hidden.add(label);
      chip.setAttribute("aria-pressed", String(!isHidden));
      shown.listeners.forEach((redraw) => redraw());
    });
    return chip;
  }));

/** A table with its rows grouped by task. */
const table = ({ headings, texts, groups }, name) => {
  const isText = (k) => (k < texts ? "text" : null);
  const cell = (value, k) => {
    const [main, range] = Array.isArray(value) ? value : [value];
    return el(k === 0 ? "th" : "td", { class: isText(k), scope: k === 0 ? "row" : null, title: isText(k) && main },
      main, range && el("i", {}, range));
  };
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
    el("table", {},
      el("thead", {}, el("tr", {}, headings.map((head, k) => el("th", { class: isText(k), scope: "col" }, head)))),
      groups.map(([group, rows]) => el("tbody", {},
        el("tr", { class: "group" }, el("th", { colspan: headings.length, scope: "rowgroup" }, el("span", {}, group))),
        rows.map((row) => el("tr", {}, row.map(cell)))))));
};

const results = () => {
  const { summary, runs } = data.tables;
  const count = runs.groups.reduce((sum, [, rows]) => sum + rows.length, 0);
  return [
    el("h2", {}, "Results"),
    el("p", { class: "muted" },
      `Interquartile means over seeds, ${data.tables.intervals}. Return and cost are means over the last tenth of the `,
      "iterations; violation rate, mean excess and cost rate are over all of training; feasible return (of the ",
      "iterations within the limit) and the bias at unsafe states are over the last ten iterations, the true bias is ",
      "over the second half.",
      summary.headings.includes("normalised return") &&
        " The normalised return is 0 for the untrained policy and 1 for the best algorithm of the task."),
    table(summary, "results by task and algorithm"),
    el("details", {}, el("summary", {}, `All runs (${count})`), table(runs, "results by run")),
  ];
};

const diagnostics = (task) => {
  const inside = task.charts.filter(({ column }) => !mainColumns.includes(column));
  return [
    inside.length > 0 && [
      el("h3", {}, "Critic and memory"),
      el("div", { class: "charts small" }, inside.map((chart) => lineChart(chart))),
    ],
    task.cases.length > 0 && [
      el("h3", {}, "Cases of CPO’s step"),
      el("div", { class: "charts small" }, task.cases.map(shareChart)),
    ],
  ].filter(Boolean).flat();
};

const replays = (task) => {
  const playable = task.replays.filter((replay) => replay.episodes);
  const failed = task.replays.filter((replay) => replay.reason);
  return [
    task.replays.length > 0 && el("h3", {}, "Replay"),
    playable.length > 0 && new Player(task.name, playable).element,
    ...failed.map((replay) => el("p", { class: "note failed" }, `No replay of ${replay.label}: ${replay.reason}`)),
  ];
};

/** Return and cost of a task: what a reader wants to see first. */
const section = (task, k) => el("section", { id: `task-${k}`, "aria-label": task.name },
  el("h2", {}, task.name),
  task.charts.length
    ? el("div", { class: "charts" }, task.charts.filter(({ column }) => mainColumns.includes(column))
      .map((chart) => lineChart(chart)))
    : el("p", { class: "note" }, "No run has finished an iteration yet."));

/** Replays and what went on inside, after the table. */
const closer = (task) => {
  const parts = [...replays(task), ...diagnostics(task)].flat().filter(Boolean);
  return parts.length > 0 && el("div", { class: "closer" }, el("h2", {}, `${task.name}: a closer look`), parts);
};

const provenance = () => el("details", { class: "provenance" },
  el("summary", {}, "What was run, and with which versions on which machine"),
  el("dl", { class: "facts" }, data.facts.map(([name, value]) =>
    el("div", { class: value.length > 90 ? "wide" : null }, el("dt", {}, name), el("dd", {}, value)))));

document.getElementById("header").append(...header());
document.getElementById("main").append(
  legend(), ...data.tasks.map(section), ...results(), ...data.tasks.map(closer).filter(Boolean), provenance());
document.getElementById("footer").append(el("p", {}, "Lines are interquartile means over seeds and bands their " +
  "95 % bootstrap intervals, of two or three seeds their range, at steps where every seed has a value. This file " +
  "needs no network."));
