// Elements, numbers and colours. Text only ever becomes text: nothing here or elsewhere parses markup.

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

/** The colour of a label, the same all over the page. */
const colourOf = (label) => `--series-${data.labels.indexOf(label) % 8}`;
const isSecondRound = (label) => data.labels.indexOf(label) >= 8;

const missing = "–";
const number = (value) =>
  value == null || Number.isNaN(value) ? missing : value.toLocaleString("en", { maximumSignificantDigits: 4 });
const whole = (value) => Math.round(value).toLocaleString("en");

/** Steps as an axis writes them: 250k, 1.5M. */
const steps = (value) => {
  if (value >= 1e6) return `${number(value / 1e6)}M`;
  return value >= 1e3 ? `${number(value / 1e3)}k` : number(value);
};

/** The array that packing.py packed. */
const unpack = (packed) => {
  const bytes = Uint8Array.from(atob(packed.floats ?? packed.codes), (character) => character.charCodeAt(0));
  if (packed.floats != null) return new Float32Array(bytes.buffer);
  return Float64Array.from(new Uint16Array(bytes.buffer), (code) => packed.low + code * packed.step);
};

/** The value in force at a frame, of [frame, value] pairs in order. */
const current = (changes, frame) => {
  let found = changes[0];
  for (const change of changes) if (change[0] <= frame) found = change;
  return found[1];
};

/** A canvas sharp on any screen: returns its context in CSS pixels, and its size. */
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

/** Colours of the style sheet as a canvas needs them; they change with the reader's theme. */
const theme = () => {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(`--${name}`).trim();
};

const onTheme = (redraw) => matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
