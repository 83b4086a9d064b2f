// Axes of a chart: scales, ticks, grid and labels.

const margins = { top: 10, right: 14, bottom: 38, left: 46 };

/** Round numbers that divide a range into about `count` parts. */
const ticks = (low, high, count) => {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  const first = Math.ceil(low / step - 1e-9);
  for (let k = first; k * step <= high + 1e-9 * step; k += 1) found.push(k * step + 0);  // + 0 turns -0 into 0
  return found;
};

/** A range with a margin; a range of zero height gets one too. */
const widen = (low, high) => {
  const margin = 0.06 * (high - low) || 0.1 * Math.abs(high) || 1;
  return [low - margin, high + margin];
};

/** The plotting area of an SVG of this size: maps values to pixels, and pixels back to steps. */
const plotArea = (width, height, [x0, x1], [y0, y1]) => {
  const { top, right, bottom, left } = margins;
  const [wide, high] = [width - left - right, height - top - bottom];
  return {
    width, height, top, left, right: left + wide, bottom: top + high, xs: [x0, x1], ys: [y0, y1],
    x: (value) => left + (wide * (value - x0)) / (x1 - x0),
    y: (value) => top + high * (1 - (value - y0) / (y1 - y0)),
    step: (pixel) => x0 + ((pixel - left) / wide) * (x1 - x0),
  };
};

const axes = (area, yLabel = number) => [
  ticks(...area.ys, area.height > 180 ? 5 : 3).map((value) => [
    svg("line", { class: "grid", x1: area.left, x2: area.right, y1: area.y(value), y2: area.y(value) }),
    svg("text", { x: area.left - 8, y: area.y(value) + 4, "text-anchor": "end" }, yLabel(value)),
  ]),
  ticks(...area.xs, Math.max(2, Math.floor(area.width / 110))).map((value) =>
    svg("text", { x: area.x(value), y: area.bottom + 16, "text-anchor": "middle" }, steps(value))),
  svg("text", { class: "axis-name", x: (area.left + area.right) / 2, y: area.height - 4, "text-anchor": "middle" },
    "environment steps"),
].flat(3);

/** Redraw an element whenever its size changes. */
const whenResized = (element, redraw) => {
  let last = 0;
  new ResizeObserver(() => {
    if (element.clientWidth === last) return;
    last = element.clientWidth;
    redraw();
  }).observe(element);
};

/** Move a cursor along the x axis by pointer or arrow keys; `move` is given a step, or null when it leaves. */
const followCursor = (plot, areaOf, stops, move) => {
  const point = (event) => move(areaOf().step(event.clientX - plot.getBoundingClientRect().left));
  let at = null;
  plot.addEventListener("pointermove", point);
  plot.addEventListener("pointerdown", point);
  plot.addEventListener("pointerleave", () => move(null));
  plot.addEventListener("blur", () => { at = null; move(null); });
  plot.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    const all = stops();
    if (!by || !all.length) return;
    event.preventDefault();
    at = Math.min(all.length - 1, Math.max(0, (at ?? all.length - 1) + by));
    move(all[at]);
  });
};
