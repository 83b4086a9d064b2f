// A chart of shares: which of CPO's cases its steps were, stacked, over the run.

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
