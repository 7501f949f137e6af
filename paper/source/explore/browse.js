// A table that can be sorted, filtered and paged, and whose columns can be hidden; its state is in
// the address. DataTables sorts and pages. Cells are elements, so text is never parsed as markup.
"use strict";
const LENGTHS = [25, 50, 100];
const NARROW_PAGE = matchMedia("(max-width: 40rem)").matches;

// Rows without a value come last in both directions.
function ordered(sign) {
  return (a, b) => {
    const [none, other] = [a === null || a === "", b === null || b === ""];
    if (none || other) return none - other;
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    return sign * String(a).localeCompare(String(b), "en", { numeric: true, sensitivity: "base" });
  };
}
DataTable.type("cell", { order: { asc: ordered(1), desc: ordered(-1) }, detect: () => false });

/* view: as in the address. columns: {key, title, of(row): text or number, cell(row): element, help}.
   filters: {key, title, of(row): text}. always: keys of columns shown unless chosen otherwise;
   `some(rows)` returns further ones for the rows that pass. `first`: the column that sorts. `file`: the
   name of the CSV file. `kept()`: further settings for the address. */
function browse({ view, what, caption, rows, columns, filters, always, some = () => [], first, file, csvColumns, kept = () => ({}) }) {
  const { params } = address.read();
  const known = new Map(columns.map((column, at) => [column.key, at]));
  const text = columns.filter((column) => !column.number);
  const words = new Map(rows.map((row) => [row, text.map((column) => column.of(row) ?? "").join(" ").toLowerCase()]));
  const chosen = Object.fromEntries(filters.map(({ key }) => [key, params.get(key) ?? ""]));
  let query = params.get("q") ?? "";
  let shown = params.has("columns") ? params.get("columns").split(",").filter((key) => known.has(key)) : null;
  let length = [...LENGTHS, -1].includes(Number(params.get("rows"))) ? Number(params.get("rows")) : 50;

  const passes = (row) => filters.every(({ key, of }) => !chosen[key] || of(row) === chosen[key])
    && query.toLowerCase().split(/\s+/).every((word) => words.get(row).includes(word));
  const passing = () => rows.filter(passes);
  // A column on which a filter is set has one value, so it is hidden.
  const visible = () => shown ?? [...always.filter((key) => !chosen[key]), ...some(passing())];

  const head = columns.map((column) => made("th", { scope: "col", class: column.number ? "number" : null, title: column.help }, column.title));
  const table = made("table", { class: "grid" }, made("caption", {}, caption), made("thead", {}, made("tr", {}, head)));
  const count = made("output", { class: "count" });
  const box = made("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": what }, table);

  const sort = params.get("sort") ?? first;
  const column = known.get(sort.replace(/^-/, "")) ?? 0;

  const choices = made("div", { class: "tools" });
  const chosenNow = made("summary", {}, "Filters");
  const folded = made("details", { class: "filters", open: NARROW_PAGE ? null : "" }, chosenNow, choices);
  const bar = made("div", { class: "tools", role: "search", "aria-label": `Filters of the ${what}` }, folded);
  for (const filter of filters) {
    const select = made("select", {}, made("option", { value: "" }, "all"));
    for (const level of distinct(rows.map(filter.of)).filter(Boolean).sort((a, b) => ordered(1)(a, b))) {
      select.append(made("option", { value: level }, filter.said?.(level) ?? level));
    }
    select.value = chosen[filter.key];
    chosen[filter.key] = select.value;
    select.addEventListener("change", () => {
      chosen[filter.key] = select.value;
      changed();
    });
    choices.append(field(filter.title, select));
  }
  const search = made("input", { type: "search", value: query, autocomplete: "off", spellcheck: "false" });
  search.addEventListener("input", () => {
    query = search.value;
    changed();
  });
  choices.append(field("Text", search));

  const boxes = columns.map((each) => {
    const tick = made("input", { type: "checkbox", value: each.key });
    tick.addEventListener("change", () => {
      const ticked = columns.map((one) => one.key).filter((key) => boxes[known.get(key)].checked);
      shown = ticked.length ? ticked : [columns[0].key];
      changed();
    });
    return tick;
  });
  const chooser = made("details", { class: "chooser" }, made("summary", {}, "Columns"),
    made("fieldset", {}, made("legend", {}, "Columns to show"), columns.map((each, at) => made("label", {}, boxes[at], ` ${each.title}`))));
  const lengths = made("select", {}, [...LENGTHS, -1].map((each) => made("option", { value: each }, each < 0 ? "all" : String(each))));
  lengths.value = String(length);
  lengths.addEventListener("change", () => {
    length = Number(lengths.value);
    api.page.len(length);
    changed();
  });
  const clear = made("a", { href: address.of(view) }, "Clear");
  bar.append(field("Rows", lengths), chooser, saves("Save as CSV", file, csvColumns, passing), clear, count);

  const element = made("div", { class: "browse" }, bar, box);
  document.getElementById("text").append(element);
  const drawnFirst = visible();
  const api = new DataTable(table, {
    // Rows are added below, after the filter is set, so that they are drawn once.
    data: [],
    columns: columns.map((each) => ({
      name: each.key, data: null, type: "cell", searchable: false, visible: drawnFirst.includes(each.key), className: each.number ? "number" : "",
      orderSequence: each.better === "high" ? ["desc", "asc"] : ["asc", "desc"],
      render: (_, kind, row) => (kind === "sort" && each.rank ? each.rank(row) : kind === "display" ? each.cell?.(row) ?? made("span", {}, String(each.of(row) ?? "") || "–") : each.of(row)),
    })),
    order: [[column, sort.startsWith("-") ? "desc" : "asc"]],
    orderMulti: false, autoWidth: false, pageLength: length,
    layout: { topStart: null, topEnd: null, bottomStart: "info", bottomEnd: "paging" },
    language: {
      info: "Rows _START_ to _END_ of _TOTAL_", infoEmpty: "No row", infoFiltered: "", thousands: "\u202f",
      zeroRecords: "No row passes all filters: clear one.", emptyTable: "Nothing was measured.",
    },
  });
  api.search.fixed("chosen", (_, row) => passes(row));
  api.rows.add(rows);

  function settings() {
    const [at, way] = api.order().at(-1);
    const now = `${way === "desc" ? "-" : ""}${columns[at].key}`;
    return {
      ...chosen, ...kept(), q: query, sort: now === first ? "" : now, columns: shown?.join(","), rows: length === 50 ? "" : length,
      page: api.page() ? api.page() + 1 : "",
    };
  }
  function changed(keepPage = false) {
    const keys = visible();
    columns.forEach((each, at) => {
      if (api.column(at).visible() !== keys.includes(each.key)) api.column(at).visible(keys.includes(each.key), false);
      boxes[at].checked = keys.includes(each.key);
    });
    api.draw(keepPage ? "page" : "full-reset");
    const named = filters.filter(({ key }) => chosen[key]).map(({ key, title, said }) => `${title}: ${said?.(chosen[key]) ?? chosen[key]}`);
    chosenNow.textContent = ["Filters", ...named, ...(query ? [`Text: ${query}`] : [])].join(" · ");
    count.textContent = `${digits(passing().length)} of ${digits(rows.length)} ${what}`;
    if (drawn) address.keep(view, "", settings());
  }
  let drawn = false;
  const page = Number(params.get("page")) - 1;
  changed();
  if (page > 0) api.page(Math.min(page, api.page.info().pages - 1)).draw("page");
  drawn = true;
  api.on("order", () => address.keep(view, "", settings()));
  api.on("page", () => address.keep(view, "", settings()));
  return () => address.keep(view, "", settings());
}
