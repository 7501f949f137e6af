// Makes the ledger's table sort by its headings, filter, and open each claim to its rule, what was
// divided by what, the trials, and the path of the raw logs. The details stand beside the table as JSON.
"use strict";
(() => {
  const titles = { source: "Source", experiment: "Experiment", then: "Then", now: "Now" };

  function made(name, text = "", attributes = {}) {
    const element = document.createElement(name);
    element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }

  function opened(claim, width) {
    const cell = made("td", "", { colspan: width });
    const facts = made("dl");
    for (const [heading, text] of claim.facts) facts.append(made("dt", heading), made("dd", text));
    for (const verdict of claim.verdicts) {
      const told = made("dd");
      for (const line of verdict.lines) told.append(made("div", line));
      for (const path of verdict.raw) {
        const raw = made("div", "Raw logs: ");
        raw.append(made("code", path));
        told.append(raw);
      }
      facts.append(made("dt", verdict.heading), told);
    }
    cell.append(facts);
    const row = made("tr", "", { class: "opened" });
    row.append(cell);
    return row;
  }

  function tools(rows, show) {
    const bar = made("div", "", { class: "ledger-tools" });
    const chosen = {};
    for (const [key, title] of Object.entries(titles)) {
      const label = made("label", `${title} `);
      const select = made("select");
      select.append(made("option", "all", { value: "" }));
      for (const level of [...new Set(rows.map((row) => row.claim.filters[key]))].sort()) {
        select.append(made("option", level, { value: level }));
      }
      select.addEventListener("change", () => {
        chosen[key] = select.value;
        show(chosen);
      });
      label.append(select);
      bar.append(label);
    }
    return bar;
  }

  for (const script of document.querySelectorAll("script.ledger")) {
    const { table: id, claims } = JSON.parse(script.textContent);
    const figure = document.getElementById(id);
    const body = figure.querySelector("tbody");
    const rows = [...body.rows].map((row, at) => ({ row, at, claim: claims[at], open: null }));
    const width = rows[0].row.cells.length;
    const count = made("output", `${rows.length} claims`);

    const place = () => body.append(...rows.flatMap(({ row, open }) => (open ? [row, open] : [row])));
    const bar = tools(rows, (chosen) => {
      let left = 0;
      for (const { row, claim, open } of rows) {
        const fits = Object.entries(chosen).every(([key, level]) => !level || claim.filters[key] === level);
        row.hidden = !fits;
        if (open) open.hidden = !fits;
        left += fits;
      }
      count.textContent = `${left} of ${rows.length} claims`;
    });
    bar.append(count);
    figure.prepend(bar);

    for (const entry of rows) {
      const button = made("button", "", { type: "button", "aria-expanded": "false" });
      const cell = entry.row.cells[0];
      button.append(...cell.childNodes);
      cell.append(button);
      button.addEventListener("click", () => {
        if (entry.open) {
          entry.open.remove();
          entry.open = null;
        } else {
          entry.open = opened(entry.claim, width);
          entry.row.after(entry.open);
        }
        button.setAttribute("aria-expanded", String(Boolean(entry.open)));
      });
    }

    const headings = [...figure.querySelectorAll("thead th")];
    headings.forEach((heading, column) => {
      const button = made("button", "", { type: "button" });
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const up = heading.getAttribute("aria-sort") !== "ascending";
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", up ? "ascending" : "descending");
        const text = ({ row }) => row.cells[column].textContent.trim();
        rows.sort((a, b) => (up ? 1 : -1) * text(a).localeCompare(text(b), "en", { numeric: true }) || a.at - b.at);
        place();
      });
    });
  }
})();
