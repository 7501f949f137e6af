// Functions that make elements. Text, which may come from other people, never becomes markup.
"use strict";
function made(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// Returns a control with its label before it.
let fields = 0;
function field(title, control) {
  control.id = `field-${fields += 1}`;
  return made("span", { class: "field" }, made("label", { for: control.id }, title), " ", control);
}

// Returns a static table: headings, then rows of text or elements.
function plain(caption, headings, rows, numbers = []) {
  const aligned = (at) => (numbers.includes(at) ? { class: "number" } : {});
  const head = headings.map((heading, at) => made("th", { scope: "col", ...aligned(at) }, heading));
  const body = rows.map((row) => made("tr", {}, row.map((cell, at) => made("td", aligned(at), cell))));
  // A box that scrolls must be focusable by keyboard.
  return made("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    made("table", {}, made("caption", {}, caption), made("thead", {}, made("tr", {}, head)), made("tbody", {}, body)));
}

function facts(pairs) {
  const known = pairs.filter(([, value]) => value && value.length !== 0);
  return made("dl", { class: "facts" }, known.flatMap(([name, value]) => [made("dt", {}, name), made("dd", {}, value)]));
}

const section = (title, ...children) => made("section", {}, made("h2", {}, title), ...children);

// Returns a folded element, whose content is made when it is first opened.
function folded(summary, make) {
  const details = made("details", { class: "folded" }, made("summary", {}, summary));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(make());
  });
  return details;
}
