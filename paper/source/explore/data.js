// The data of the page, from the JSON in it: rows as objects, and maps that find them by key.
"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);

const objects = ({ columns, rows }) => rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])));
const VARIANTS = objects(DATA.variants);
const RATES = objects(DATA.rates);
const TRIALS = objects(DATA.trials);
const SERVERS = new Map(DATA.servers.map((server) => [server.server, server]));
const EXPERIMENTS = new Map(DATA.experiments.map((experiment) => [experiment.experiment, experiment]));

const keyOf = (row) => JSON.stringify([row.experiment, row.server, row.variant]);
function grouped(rows) {
  const found = new Map();
  for (const row of rows) {
    if (!found.has(keyOf(row))) found.set(keyOf(row), []);
    found.get(keyOf(row)).push(row);
  }
  return found;
}
const RATES_OF = grouped(RATES);
// The last trial of each variant.
const LAST_OF = new Map([...grouped(TRIALS)].map(([key, trials]) => [key, trials.reduce((one, other) => (other.started_at > one.started_at ? other : one))]));

const titleOf = (server) => SERVERS.get(server)?.title ?? server;
const experimentOf = (name) => EXPERIMENTS.get(name)?.title ?? name;
const nameOf = (variant) => [titleOf(variant.server), variant.label].filter(Boolean).join(", ");
// The path of a trial's raw logs; empty where the dataset keeps tables alone.
const rawOf = (trial) => {
  const before = DATA.about.raw[trial.experiment];
  return before && `${before}${trial.server}/${trial.variant}/${trial.n}`;
};
// Memory is shown in MB and times in ms; the CSV has the units of the columns' names.
const UNITS = { B: ["MB", 1e-6], "µs": ["ms", 1e-3] };
const unitOf = (name) => {
  const { unit } = DATA.quantities[name];
  return (name.startsWith("cpu_") ? null : UNITS[unit]) ?? [unit, 1];
};
// Returns a measured quantity in the unit that is shown.
const shownOf = (name, found) => found && [...found.slice(0, 3).map((end) => (end === null ? null : end * unitOf(name)[1])), ...found.slice(3)];
const headingOf = (name) => {
  const [unit] = unitOf(name);
  return unit ? `${DATA.quantities[name].title} (${unit})` : DATA.quantities[name].title;
};
const computedAs = (definitions) => made("details", {}, made("summary", {}, "How each number is computed"),
  made("ul", {}, definitions.map((definition) => made("li", {}, `${definition}.`))));
const OF_TRIALS = "n = 3 of 5: the number is computed from rounds in which every variant of the experiment ran, and from trials whose points count";
const definitionsOf = (names) => computedAs([...names.map((name) => DATA.quantities[name].definition), OF_TRIALS]);
// The quantities for which at least one of the variants has a value.
const quantitiesOf = (variants) => Object.keys(DATA.quantities).filter((name) => variants.some((row) => row[name]));
const distinct = (values) => [...new Set(values)];
