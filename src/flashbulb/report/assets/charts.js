// Charts of learning curves, with a line and an interval per algorithm, and of the shares of CPO's cases.

/** Which labels are hidden, and the charts to redraw when that changes. */
const shown = { hidden: new Set(), listeners: [] };

const nearest = (series, step) => {
  let best = 0;
  series.steps.forEach((at, k) => { if (Math.abs(at - step) < Math.abs(series.steps[best] - step)) best = k; });
  return best;
};

const bandPath = (series, area) => {
  const up = series.steps.map((at, k) => `${area.x(at).toFixed(1)},${area.y(series.high[k]).toFixed(1)}`);
  const down = series.steps.map((at, k) => `${area.x(at).toFixed(1)},${area.y(series.low[k]).toFixed(1)}`);
  return `M${up.join("L")}L${down.reverse().join("L")}Z`;
};

const linePath = (series, area) =>
  `M${series.steps.map((at, k) => `${area.x(at).toFixed(1)},${area.y(series.value[k]).toFixed(1)}`).join("L")}`;

const yRange = (visible, limits) => {
  const all = visible.flatMap((series) => [...series.value, ...(series.low ?? []), ...(series.high ?? [])]);
  if (!all.length) return [0, 1];
  const [low, high] = widen(Math.min(...all, ...limits), Math.max(...all, ...limits));
  return limits.length || Math.min(...all) === 0 ? [Math.min(0, Math.min(...all)), high] : [low, high];
};

const drawn = (series, area, cursor) => {
  const k = nearest(series, cursor ?? Infinity);
  const group = svg("g", {},
    series.low && svg("path", { class: "band", d: bandPath(series, area) }),
    svg("path", { class: repeatsColour(series.label) ? "line dashed" : "line", d: linePath(series, area) }),
    (cursor != null || series.steps.length === 1) &&
      svg("circle", { class: "dot", r: 4.5, cx: area.x(series.steps[k]), cy: area.y(series.value[k]) }));
  group.style.setProperty("--series", `var(${colourOf(series.label)})`);
  return group;
};

const readOut = (visible, cursor) => {
  const last = Math.max(...visible.map((series) => series.steps.at(-1)));
  const longest = visible.find((series) => series.steps.at(-1) === last);
  const at = cursor == null ? last : longest.steps[nearest(longest, cursor)];
  return [
    el("span", { class: "muted" }, `${whole(at)} steps`),
    ...visible.map((series) => {
      const k = nearest(series, at);
      const range = series.low && el("i", {}, `${series.is_range ? "range " : ""}[${number(series.low[k])}, ${number(series.high[k])}]`);
      const ended = at > series.steps.at(-1) && el("i", {}, `at ${steps(series.steps[k])}`);
      const value = el("b", {}, number(series.value[k]));
      return el("span", {}, swatch(colourOf(series.label)), series.label, value, range, ended);
    }),
  ];
};

const lineChart = (chart) => {
  const plot = svg("svg", { class: "plot", role: "img", tabindex: "0" });
  const readout = el("p", { class: "readout", "aria-live": "polite" });
  const dashed = chart.limits;
  let [area, cursor] = [null, null];
  const visible = () => chart.series.filter((series) => !shown.hidden.has(series.label));
  const draw = () => {
    if (!plot.clientWidth) return;
    const end = Math.max(...chart.series.map((series) => series.steps.at(-1)));
    area = plotArea(plot.clientWidth, plot.clientHeight, [0, end || 1], yRange(visible(), dashed));
    plot.setAttribute("viewBox", `0 0 ${area.width} ${area.height}`);
    plot.replaceChildren(...axes(area),
      ...visible().map((series) => drawn(series, area, cursor)),
      ...dashed.flatMap((limit) => [
        svg("line", { class: "limit", x1: area.left, x2: area.right, y1: area.y(limit), y2: area.y(limit) }),
        svg("text", { class: "limit-name", x: area.right, y: area.y(limit) - 7, "text-anchor": "end" },
          `limit ${number(limit)}`),
      ]));
    if (cursor != null && visible().length) {
      const x = Math.min(area.right, Math.max(area.left, area.x(cursor)));
      plot.append(svg("line", { class: "cursor", x1: x, x2: x, y1: area.top, y2: area.bottom }));
    }
    readout.replaceChildren(...(visible().length ? readOut(visible(), cursor) : []));
    plot.setAttribute("aria-label", `${chart.title} over steps; at the end ` +
      visible().map((series) => `${series.label} ${number(series.value.at(-1))}`).join(", "));
  };
  followCursor(plot, () => area, () => visible()[0]?.steps ?? [], (step) => { cursor = step; draw(); });
  whenResized(plot, draw);
  shown.listeners.push(draw);
  const caption = el("figcaption", {}, chart.title, chart.note && el("span", {}, chart.note));
  return el("figure", { class: "chart", "data-column": chart.column }, caption, plot, readout);
};

/** A chart of the shares of the cases of CPO's step, stacked, over steps. */
const shareChart = (cases) => {
  const plot = svg("svg", { class: "plot", role: "img", tabindex: "0" });
  const readout = el("p", { class: "readout", "aria-live": "polite" });
  const bins = cases.shares.length;
  const middles = cases.shares.map((_, k) => (cases.edges[k] + cases.edges[k + 1]) / 2);
  let [area, cursor] = [null, null];
  const binAt = (step) => Math.min(bins - 1, Math.max(0, cases.edges.findIndex((edge) => edge > step) - 1));
  const bar = (shares, k) => {
    let below = 0;
    return shares.map((share, which) => {
      if (!share) return null;
      const [low, high] = [below, (below += share)];
      const [left, right] = [area.x(cases.edges[k]), area.x(cases.edges[k + 1])];
      const rect = svg("rect", { class: "bin", x: left, width: Math.max(0.5, right - left - 0.75), y: area.y(high),
        height: area.y(low) - area.y(high), opacity: cursor == null || binAt(cursor) === k ? 1 : 0.45 });
      rect.style.setProperty("--series", `var(--case-${which})`);
      return rect;
    });
  };
  const draw = () => {
    if (!plot.clientWidth) return;
    area = plotArea(plot.clientWidth, plot.clientHeight, [0, cases.edges.at(-1)], [0, 1]);
    plot.setAttribute("viewBox", `0 0 ${area.width} ${area.height}`);
    plot.replaceChildren(...axes(area, (value) => `${Math.round(100 * value)} %`),
      ...cases.shares.flatMap(bar).filter(Boolean));
    const k = cursor == null ? null : binAt(cursor);
    const means = cases.names.map((_, which) => {
      const known = cases.shares.map((shares) => shares[which]).filter((share) => share != null);
      return known.reduce((sum, share) => sum + share, 0) / known.length;
    });
    const values = k == null ? means : cases.shares[k];
    const when = k == null ? "all bins" : `${steps(cases.edges[k])} to ${steps(cases.edges[k + 1])} steps`;
    readout.replaceChildren(el("span", { class: "muted" }, when), ...cases.names.map((name, which) =>
      el("span", {}, swatch(`--case-${which}`), name,
        el("b", {}, values[which] == null ? missing : `${Math.round(100 * values[which])} %`))));
    plot.setAttribute("aria-label", `Cases of CPO's step of ${cases.label}: ` +
      cases.names.map((name, which) => `${name} ${Math.round(100 * means[which])} %`).join(", "));
  };
  followCursor(plot, () => area, () => middles, (step) => { cursor = step; draw(); });
  whenResized(plot, draw);
  const figure = el("figure", { class: "chart", "data-column": "cpo_case" },
    el("figcaption", {}, cases.label), plot, readout);
  shown.listeners.push(() => { figure.hidden = shown.hidden.has(cases.label); draw(); });
  return figure;
};
