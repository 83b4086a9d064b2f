// What a player is operated with and read from.

const check = (text, on) => {
  const input = el("input", { type: "checkbox", checked: on });
  return { input, label: el("label", { class: "check" }, input, text) };
};

const choice = (text, options) => {
  const select = el("select", {}, options.map(([value, name]) => el("option", { value }, name)));
  return { select, label: el("label", { class: "field" }, text, select) };
};

const gauge = (name) => {
  const [value, small] = [el("span"), el("small")];
  const dd = el("dd", {}, value, small);
  return { dd, value, small, row: el("div", {}, el("dt", {}, name), dd) };
};

/** Drawn, because not every font has them. */
const icons = {
  play: "M6 4v16l13-8z",
  pause: "M6 4h4v16H6zM14 4h4v16h-4z",
  "step back": "M5 5h3v14H5zM19 5v14L9 12z",
  "step forward": "M16 5h3v14h-3zM5 5v14l10-7z",
  "cost before": "M12 12L20 4v16zM2 9l2-2 3 3 3-3 2 2-3 3 3 3-2 2-3-3-3 3-2-2 3-3z",
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
