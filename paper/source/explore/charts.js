// Vega-Lite charts, drawn when they come near the screen, in the light or the dark scheme.
"use strict";
const dark = matchMedia("(prefers-color-scheme: dark)");
// More series than this cannot be told apart; three points make a curve.
const SERIES = 12;
const POINTS = 3;
const HEIGHT = 230;
// Fewer than colours, so that a shape and a colour meet again only after all other pairs.
const SHAPES = ["circle", "square", "triangle-up", "diamond", "cross"];

// Vega is most of the page, so it is loaded when the first chart is drawn.
let vegaIsHere = false;
function wakeVega() {
  if (vegaIsHere) return;
  const script = made("script");
  script.textContent = document.getElementById("vega").textContent;
  document.head.append(script);
  vegaIsHere = true;
}

// Legends in one column where two would be cut.
const NARROW = 420;
const fitted = (spec, width) => (width >= NARROW ? spec : JSON.parse(JSON.stringify(spec),
  (key, value) => (key === "legend" && value ? { ...value, columns: 1, labelLimit: width - 40 } : value)));

function themed(spec, width) {
  const config = { ...DATA.theme, background: null };
  if (dark.matches) {
    for (const [part, values] of Object.entries(night)) config[part] = { ...config[part], ...values };
  }
  return { $schema: "https://vega.github.io/schema/vega-lite/v6.json", ...fitted(spec, width), config, width, autosize: { type: "fit-x", contains: "padding" } };
}

async function draw(box) {
  const width = Math.floor(Math.min(box.clientWidth, 700));
  const wanted = `${width} ${dark.matches}`;
  if (!width || box.dataset.drawn === wanted) return;
  box.dataset.drawn = wanted;
  wakeVega();
  const live = made("div");
  const { view } = await vegaEmbed(live, themed(box.spec, width), {
    renderer: "svg", actions: { export: true, source: false, compiled: false, editor: false }, downloadFileName: box.dataset.file,
  });
  box.view?.finalize();
  box.view = view;
  box.removeAttribute("role");
  box.removeAttribute("aria-label");
  live.querySelector("summary")?.setAttribute("aria-label", "Save this chart");
  box.replaceChildren(live);
}

const near = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    entry.target.near = entry.isIntersecting;
    if (entry.isIntersecting) draw(entry.target);
  }
}, { rootMargin: "400px" });
const again = () => document.querySelectorAll(".chart").forEach((box) => box.near && draw(box));
dark.addEventListener("change", again);
let waiting;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(again, 150);
});

function chart({ title, said, spec }) {
  const box = made("div", { class: "chart", role: "img", "aria-label": said, "data-file": title.replaceAll(/\W+/g, "-") });
  box.spec = { ...spec, description: said };
  near.observe(box);
  return made("div", { class: "panel" }, made("p", { class: "title" }, title), box);
}

const scaleOf = (log) => (log ? { type: "log", nice: false } : { zero: true });
const colour = (series, columns, range) => ({
  field: "series", type: "nominal", sort: null, scale: range ? { domain: series, range } : { domain: series },
  legend: series.length > 1 ? { title: null, orient: "top", columns, symbolOpacity: 1, labelLimit: 230 } : null,
});
const TIPS = (x, y) => [
  { field: "series", type: "nominal", title: "variant" }, { field: "at", type: "nominal", title: x }, { field: "told", type: "nominal", title: y },
];

// "0.25", not "250m"; thousands and more are shortened.
const axisOf = (values) => ({ format: Math.max(...values.map((each) => Math.abs(each.value))) < 1000 ? ",.3~r" : "~s" });

// A curve for each series over x, a number or a level, with its interval.
function curves(values, x, y, { ordinal = false, log = false }) {
  const series = distinct(values.map((value) => value.series));
  const picked = { param: "picked", empty: true };
  const fade = (full, faint) => ({ condition: { ...picked, value: full }, value: faint });
  const base = {
    x: { field: "x", type: ordinal ? "ordinal" : "quantitative", title: x, sort: null, axis: ordinal ? { labelAngle: 0 } : { format: ",~r" } },
    color: colour(series, 2), tooltip: TIPS(x, y),
  };
  const span = { y: { field: "low", type: "quantitative", title: y, scale: scaleOf(log) }, y2: { field: "high" } };
  const line = { field: "value", type: "quantitative", title: y, scale: scaleOf(log), axis: axisOf(values) };
  return {
    data: { values }, height: HEIGHT,
    layer: [
      { mark: { type: "area" }, transform: [{ filter: "isValid(datum.low)" }], encoding: { ...base, ...span, opacity: fade(0.18, 0.03) },
        params: [{ name: "picked", select: { type: "point", fields: ["series"] }, bind: "legend" }] },
      { mark: { type: "line" }, encoding: { ...base, y: line, opacity: fade(1, 0.12) } },
      { mark: { type: "point", filled: true }, encoding: { ...base, y: line, opacity: fade(1, 0.12), shape: colour(series, 2, SHAPES) } },
    ],
  };
}

// A row for each variant: the median as a dot, its interval as a line.
function dots(values, x) {
  const colours = distinct(values.map((value) => value.series));
  const base = { y: { field: "at", type: "nominal", sort: null, title: null, axis: { labelLimit: Math.min(260, innerWidth / 2.5), grid: true } }, tooltip: TIPS("variant", x) };
  if (colours.length > 1) Object.assign(base, { color: colour(colours, 3), yOffset: { field: "series", sort: null } });
  const at = { field: "value", type: "quantitative", title: x, scale: { zero: true }, axis: axisOf(values) };
  return {
    data: { values }, height: distinct(values.map((each) => each.at)).length * (colours.length > 1 ? 12 + 10 * colours.length : 24),
    layer: [
      { mark: { type: "rule", strokeWidth: 2 }, transform: [{ filter: "isValid(datum.low)" }], encoding: { ...base, x: { ...at, field: "low" }, x2: { field: "high" } } },
      { mark: { type: "point", filled: true, size: 60 }, encoding: { ...base, x: at } },
    ],
  };
}

const value = (found, more) => ({ value: found[0], low: found[1], high: found[2], told: told(found), ...more });

// The variants themselves, or the ends of what varies where they are too many to tell apart.
function few(variants) {
  if (variants.length <= SERIES) return variants;
  const levels = variants.map((row) => row.level).filter((level) => level !== null);
  const ends = variants.filter((row) => row.level === Math.min(...levels) || row.level === Math.max(...levels));
  return (ends.length ? ends : variants).slice(0, SERIES);
}

function summary(name, over, values) {
  const best = values.reduce((one, other) => (other.value > one.value ? other : one));
  return `${name} ${over}: ${distinct(values.map((each) => each.series)).length} series, ${values.length} points; the highest, ${digits(best.value)}, is ${best.series || best.at}.`;
}

/* Returns every chart of these variants of one experiment; none where nothing was measured. `named`
   says what a variant is called, and `series` what it is called without the level of its axis. */
function chartsOf(experiment, variants, named, series) {
  const found = [];
  const add = (title, over, values, spec) => values.length && found.push({ title, said: summary(title, over, values), spec: spec(values) });
  const levels = distinct(variants.map((row) => row.level).filter((level) => level !== null)).sort((a, b) => a - b);
  const over = variants.find((row) => row.over)?.over;
  const offered = variants.flatMap((row) => (RATES_OF.get(keyOf(row)) ?? []).map((rate) => ({ ...rate, row })));
  const rates = distinct(offered.map((rate) => rate.rate_rps)).sort((a, b) => a - b);
  const said = (rate) => (rate ? `${digits(rate)} req/s` : "closed loop");
  const shown = few(variants);

  for (const name of rates.length > 1 ? DATA.of_rate[experiment] : []) {
    const heading = headingOf(name);
    const known = offered.filter((rate) => rate[name]);
    if (!known.length) continue;
    if (rates.length >= POINTS && !rates.includes(0)) {
      const values = known.filter((rate) => shown.includes(rate.row))
        .map((rate) => value(shownOf(name, rate[name]), { x: rate.rate_rps, at: said(rate.rate_rps), series: named(rate.row) }));
      add(heading, "by offered rate", values, (all) => curves(all, "offered (req/s)", heading, {}));
    }
    if (over && levels.length >= POINTS) {
      const title = EXPERIMENTS.get(experiment).factors[over] ?? over;
      const which = rates.length < POINTS ? rates : rates.slice(-1);
      const ofLevel = known.filter((rate) => rate.row.level !== null && which.includes(rate.rate_rps)).sort((a, b) => a.row.level - b.row.level);
      const values = ofLevel.map((rate) => value(shownOf(name, rate[name]), {
        x: rate.row.level, at: digits(rate.row.level), series: [series(rate.row), said(rate.rate_rps)].filter(Boolean).join(", "),
      }));
      const first = distinct(values.map((each) => each.series)).slice(0, SERIES);
      add(`${heading} by ${title}`, "", values.filter((each) => first.includes(each.series)), (all) => curves(all, title, heading, { ordinal: true }));
    } else if (rates.length < POINTS || rates.includes(0)) {
      const values = known.filter((rate) => shown.includes(rate.row))
        .map((rate) => value(shownOf(name, rate[name]), { at: named(rate.row) || "default", series: said(rate.rate_rps) }));
      add(heading, "by variant", values, (all) => dots(all, heading));
    }
  }
  // A capacity has no offered rate.
  for (const name of DATA.of_sweep[experiment].filter((each) => rates.length <= 1 || each === "capacity_rps")) {
    const values = variants.filter((row) => row[name]).map((row) => value(shownOf(name, row[name]), { at: named(row) || "default", series: "" }));
    add(headingOf(name), "by variant", values, (all) => dots(all, headingOf(name)));
  }
  return found;
}
