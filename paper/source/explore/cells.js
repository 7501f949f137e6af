// Formats numbers: three significant digits, whole numbers from 1000 on, thin spaces.
"use strict";
const WRITTEN = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 15 });
function digits(value) {
  if (value === null || value === undefined) return "–";
  const rounded = Math.abs(value) >= 1000 ? Math.round(value) : Number(value.toPrecision(3));
  return WRITTEN.format(rounded).replaceAll(",", "\u202f");
}

// "12 345 [12 000, 12 500], n = 3" of a measured quantity.
function told(found) {
  if (!found) return "not measured";
  const [median, low, high, trials, more] = found;
  const ends = low === null || more ? "" : ` [${digits(low)}, ${digits(high)}]`;
  return `${more ? "≥ " : ""}${digits(median)}${ends}, n = ${trials}`;
}

// The highest value that a quantity has in each experiment: a bar's full length.
const MOST = (() => {
  const found = new Map();
  for (const row of VARIANTS) {
    for (const name of Object.keys(DATA.quantities)) {
      if (!row[name]) continue;
      const key = `${row.experiment} ${name}`;
      found.set(key, Math.max(found.get(key) ?? 0, row[name][2] ?? row[name][0]));
    }
  }
  return found;
})();

const counted = (number, word) => `${digits(number)} ${word}${number === 1 ? "" : "s"}`;

// Returns a measured quantity as a number, its interval and a bar. A lower bound has no upper
// end.
function bar(row, name) {
  const found = row[name];
  if (!found) return made("span", { class: "none" }, "–");
  const [median, low, high, trials, more] = found;
  const scale = unitOf(name)[1];
  const said = (value) => digits(value * scale);
  const most = MOST.get(`${row.experiment} ${name}`) || 1;
  const share = (value) => `${(100 * Math.max(0, value) / most).toFixed(1)}%`;
  const line = made("span", { class: "bar", "aria-hidden": "true" });
  line.style.setProperty("--to", share(median));
  line.style.setProperty("--low", share(low ?? median));
  line.style.setProperty("--high", share((more ? null : high) ?? median));
  const ends = low === null || more ? "" : `${said(low)} to ${said(high)}`;
  const n = trials !== row.trials ? `n = ${trials} of ${row.trials}` : ends ? "" : `n = ${trials}`;
  return made("span", { class: "measured-cell" }, made("b", {}, `${more ? "≥ " : ""}${said(median)}`), " ", made("small", {}, [ends, n].filter(Boolean).join(", ")), line);
}

// Returns a warning, which comes before any number.
const wrongly = (text) => (text ? made("strong", { class: "wrong" }, text) : made("span", { class: "none" }, "–"));

const linkTo = (text, ...where) => made("a", { href: address.of(...where) }, text);
