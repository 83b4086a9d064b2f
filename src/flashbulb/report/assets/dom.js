// Elements, numbers, colours and controls. Text is only ever inserted as text; nothing here or elsewhere parses markup.

const data = JSON.parse(document.getElementById("data").textContent);
const svgNamespace = document.getElementById("blank").namespaceURI;

const fill = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
};

const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(svgNamespace, tag), attributes, children);

/** A small square in a colour of the style sheet, such as "--goal". */
const swatch = (colour, shape = "") => {
  const mark = el("span", { class: `swatch ${shape}`, "aria-hidden": "true" });
  mark.style.setProperty("--series", `var(${colour})`);
  return mark;
};

/** The colour of a label, the same as in the figures of `plot` and `study`; the dark theme makes it lighter. */
const labels = Object.keys(data.colours);
const colourOf = (label) => `--label-${labels.indexOf(label)}`;
for (const label of labels) {
  document.documentElement.style.setProperty(
    colourOf(label), `color-mix(in srgb, white var(--lighten), ${data.colours[label]})`);
}

/** Whether an earlier label has the same colour. */
const repeatsColour = (label) =>
  labels.find((other) => data.colours[other] === data.colours[label]) !== label;

const missing = "–";
const number = (value) =>
  value == null || Number.isNaN(value) ? missing : value.toLocaleString("en", { maximumSignificantDigits: 4 });
const whole = (value) => Math.round(value).toLocaleString("en");

/** Steps as on an axis: 250k, 1.5M. */
const steps = (value) => {
  if (value >= 1e6) return `${number(value / 1e6)}M`;
  return value >= 1e3 ? `${number(value / 1e3)}k` : number(value);
};

/** The array that encoding.py encoded. */
const decode = (packed) => {
  const bytes = Uint8Array.from(atob(packed.floats ?? packed.codes), (character) => character.charCodeAt(0));
  if (packed.floats != null) return new Float32Array(bytes.buffer);
  return Float64Array.from(new Uint16Array(bytes.buffer), (code) => packed.low + code * packed.step);
};

/** The value at a frame, from [frame, value] pairs in order. */
const current = (changes, frame) => {
  let found = changes[0];
  for (const change of changes) if (change[0] <= frame) found = change;
  return found[1];
};

/** Match a canvas to the resolution of the screen; returns its context in CSS pixels, and its size. */
const sharpen = (canvas) => {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
};

/** Colours of the style sheet for a canvas; they change with the reader's theme. */
const theme = () => {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(`--${name}`).trim();
};

const onTheme = (redraw) => matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

const check = (text, on) => {
  const input = el("input", { type: "checkbox", checked: on });
  return { input, label: el("label", { class: "check" }, input, text) };
};

const choice = (text, options) => {
  const select = el("select", {}, options.map(([value, name]) => el("option", { value }, name)));
  return { select, label: el("label", { class: "field" }, text, select) };
};

const counter = (name) => {
  const [value, small] = [el("span"), el("small")];
  const dd = el("dd", {}, value, small);
  return { dd, value, small, row: el("div", {}, el("dt", {}, name), dd) };
};

/** As paths, because not every font has these symbols. */
const icons = {
  play: "M6 4v16l13-8z",
  pause: "M6 4h4v16H6zM14 4h4v16h-4z",
  "step back": "M5 5h3v14H5zM19 5v14L9 12z",
  "step forward": "M16 5h3v14h-3zM5 5v14l10-7z",
  "previous cost": "M12 12L20 4v16zM2 9l2-2 3 3 3-3 2 2-3 3 3 3-2 2-3-3-3 3-2-2 3-3z",
  "next cost": "M12 12L4 4v16zM12 9l2-2 3 3 3-3 2 2-3 3 3 3-2 2-3-3-3 3-2-2 3-3z",
};

const label = (button, name, text) => {
  button.setAttribute("aria-label", name);
  button.setAttribute("title", name);
  const icon = svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: icons[name] }));
  button.replaceChildren(icon, text);
};

const button = (name, act, text = "") => {
  const made = el("button", { type: "button" });
  label(made, name, text);
  made.addEventListener("click", act);
  return made;
};
