// Saves rows as a CSV file (RFC 4180), made in the browser.
"use strict";
const ENDS = ["", "_low", "_high", "_trials", "_at_least"];

// A spreadsheet interprets text that begins like this as a formula.
const inert = (text) => (/^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text);

function quoted(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = inert(String(value));
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// A measured quantity takes five columns: median, ends of the interval, trials, and whether it is
// only a lower bound.
function csv(rows, columns) {
  const measured = (name) => name in DATA.quantities;
  const head = columns.flatMap((name) => (measured(name) ? ENDS.map((end) => name + end) : [name]));
  const lines = rows.map((row) => columns.flatMap((name) => {
    if (!measured(name)) return [row[name]];
    const [median, low, high, trials, more] = row[name] ?? [];
    return [median, low, high, trials, row[name] ? Number(more ?? 0) : null];
  }));
  return [head, ...lines].map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
}

// Returns a button that saves what `rows` returns when it is pressed.
function saves(label, file, columns, rows) {
  const button = made("button", { type: "button", class: "save" }, label);
  button.addEventListener("click", () => {
    const known = rows();
    const names = columns ?? distinct(known.flatMap(Object.keys)).filter((name) => name !== "compared");
    const link = made("a", { download: `${DATA.dataset}-${file}.csv` });
    link.href = URL.createObjectURL(new Blob([csv(known, names)], { type: "text/csv" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
  return button;
}
