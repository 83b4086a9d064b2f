// The page: what was run, which algorithms to show, the numbers, and each task with its charts and replays.

const outcomes = ["return", "cost"];

const header = () => [
  el("h1", {}, data.title),
  el("dl", { class: "facts" }, data.facts.map(([name, value]) =>
    el("div", { class: value.length > 90 ? "wide" : null }, el("dt", {}, name), el("dd", {}, value)))),
  data.tasks.length > 1 && el("nav", { "aria-label": "tasks" }, data.tasks.map((task, k) =>
    el("a", { href: `#task-${k}` }, task.name))),
].filter(Boolean);

/** Toggles for every algorithm; they stay in sight. */
const legend = () => el("div", { class: "bar", role: "group", "aria-label": "algorithms shown in the charts" },
  data.labels.map((label) => {
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

/** Rows under the names of their tasks. */
const table = ({ heads, texts, groups }, name) => {
  const isText = (k) => (k < texts ? "text" : null);
  const cell = (value, k) => {
    const [main, range] = Array.isArray(value) ? value : [value];
    return el(k === 0 ? "th" : "td", { class: isText(k), scope: k === 0 ? "row" : null, title: isText(k) && main },
      main, range && el("i", {}, range));
  };
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
    el("table", {},
      el("thead", {}, el("tr", {}, heads.map((head, k) => el("th", { class: isText(k), scope: "col" }, head)))),
      groups.map(([group, rows]) => el("tbody", {},
        el("tr", { class: "group" }, el("th", { colspan: heads.length, scope: "rowgroup" }, el("span", {}, group))),
        rows.map((row) => el("tr", {}, row.map(cell)))))));
};

const numbers = () => {
  const { summary, runs } = data.tables;
  const count = runs.groups.reduce((sum, [, rows]) => sum + rows.length, 0);
  return [
    el("h2", {}, "Numbers"),
    el("p", { class: "muted" },
      "Interquartile means over seeds, with 95 % bootstrap intervals where there are several. Return and cost are of ",
      "the last tenth of the iterations; violation rate, mean excess and cost rate are of the whole of training.",
      summary.heads.includes("normalised return") &&
        " A normalised return of 0 is that of an untrained policy, of 1 that of the task’s best algorithm."),
    table(summary, "numbers by task and algorithm"),
    el("details", {}, el("summary", {}, `Every run (${count})`), table(runs, "numbers by run")),
  ];
};

const learner = (task) => {
  const inside = task.charts.filter(({ column }) => !outcomes.includes(column));
  return [
    inside.length > 0 && [
      el("h3", {}, "Inside the learner"),
      el("div", { class: "charts small" }, inside.map((chart) => lineChart(chart, []))),
    ],
    task.cases.length > 0 && [
      el("h3", {}, "What CPO’s steps were"),
      el("div", { class: "charts small" }, task.cases.map(shareChart)),
    ],
  ].filter(Boolean).flat();
};

const replays = (task) => {
  const playable = task.replays.filter((replay) => replay.episodes);
  const refused = task.replays.filter((replay) => replay.why);
  return [
    task.replays.length > 0 && el("h3", {}, "Replay"),
    playable.length > 0 && new Player(task.name, playable).element,
    ...refused.map((replay) => el("p", { class: "note refused" }, `No replay of ${replay.label}: ${replay.why}`)),
  ];
};

const section = (task, k) => el("section", { id: `task-${k}`, "aria-label": task.name },
  el("h2", {}, task.name),
  task.charts.length
    ? el("div", { class: "charts" }, task.charts.filter(({ column }) => outcomes.includes(column))
      .map((chart) => lineChart(chart, task.limits)))
    : el("p", { class: "note" }, "No run has finished an iteration yet."),
  replays(task), learner(task));

document.getElementById("header").append(...header());
document.getElementById("main").append(legend(), ...numbers(), ...data.tasks.map(section));
document.getElementById("footer").append(el("p", {}, "Lines are interquartile means over seeds, bands their 95 % " +
  "bootstrap intervals (the range of two or three seeds), where every seed has a value. This file is complete in " +
  "itself."));
