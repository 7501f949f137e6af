// The view of all variants, one row each, with its measured quantities.
"use strict";
const YEARS = (server) => (SERVERS.get(server)?.year ? String(SERVERS.get(server).year) : "");

const dateOf = (row) => LAST_OF.get(keyOf(row))?.started_at.slice(0, 10) ?? "";
const ageOf = (row) => (dateOf(row) && YEARS(row.server) ? Number(dateOf(row).slice(0, 4)) - Number(YEARS(row.server)) : null);

// Columns of text that say which variant a row is; the rest are quantities.
const DESCRIBED = [
  { key: "server", title: "Server", of: (row) => titleOf(row.server), cell: (row) => made("span", {}, linkTo(titleOf(row.server), "servers", row.server), NARROW_PAGE && row.label ? made("small", { class: "label" }, row.label) : null) },
  { key: "variant", title: "Variant", of: (row) => row.label || "default" },
  { key: "experiment", title: "Experiment", of: (row) => experimentOf(row.experiment) },
  { key: "post", title: "Post", of: (row) => EXPERIMENTS.get(row.experiment).post },
  { key: "language", title: "Language", of: (row) => SERVERS.get(row.server)?.language ?? "" },
  { key: "mechanism", title: "Mechanism", of: (row) => row.mechanism, help: "How it waits for many connections" },
  { key: "release", title: "Release", of: (row) => SERVERS.get(row.server)?.release ?? "" },
  { key: "year", title: "Year", of: (row) => SERVERS.get(row.server)?.year ?? null, help: "Of the release" },
  { key: "date", title: "Measured", of: (row) => dateOf(row), help: "When its last trial began" },
  { key: "version", title: "Version", of: (row) => LAST_OF.get(keyOf(row))?.version ?? "", help: "As the server reports it" },
  { key: "age", title: "Age (years)", of: (row) => ageOf(row), number: true, help: "Of the release when it was measured" },
  { key: "stands", title: "Stands for", of: (row) => row.stands, help: "In the verdicts on the claims" },
  { key: "class", title: "Class", of: (row) => row.class, number: true, help: "By CPU for each reply at the lowest rate that all servers were offered, in their default variants: those that cannot be told apart share one" },
  { key: "trials", title: "Trials", of: (row) => row.trials, number: true },
  { key: "conformance", title: "Conformance", of: (row) => row.conformance },
  { key: "wrong", title: "Wrong answers under load", of: (row) => row.wrong, cell: (row) => wrongly(row.wrong) },
  { key: "why", title: "Why no number", of: (row) => row.why },
];

const quantityColumn = (name) => ({
  key: name, title: headingOf(name), number: true, better: DATA.quantities[name].better,
  of: (row) => row[name]?.[0] ?? null,
  cell: (row) => bar(row, name),
});

function variantsView(main) {
  const { trials, measured, servers } = DATA.about;
  main.append(made("h1", {}, "Every variant"),
    made("p", {}, `The dataset ${DATA.dataset} has ${counted(trials, "trial")} of ${counted(servers, "server")}; ${digits(measured)} were measured. `
      + "A variant is a server with its settings in one experiment. The large number is the median over trials, the small ones are its interval; "
      + "≥ marks a server that answered everything it was offered, and so may do more. The longest bar is the highest value in the same experiment."),
    definitionsOf(Object.keys(DATA.quantities)));
  if (!VARIANTS.length) {
    main.append(made("p", { class: "note" }, "Nothing was measured in this dataset yet."));
    return;
  }
  const filter = (key, title, of) => ({ key, title, of });
  const quantities = quantitiesOf(VARIANTS).map(quantityColumn);
  // On a narrow screen numbers follow the servers' names; wrong answers come before any number.
  const lead = NARROW_PAGE ? ["server", "wrong"] : ["server", "variant", "experiment", "wrong"];
  const leads = (column) => lead.includes(column.key);
  browse({
    view: "variants", what: "variants", caption: "Every variant with its measured quantities", rows: VARIANTS,
    columns: [...DESCRIBED.filter(leads), ...quantities, ...DESCRIBED.filter((column) => !leads(column))],
    filters: [
      filter("post", "Post", (row) => EXPERIMENTS.get(row.experiment).post),
      { ...filter("experiment", "Experiment", (row) => row.experiment), said: experimentOf },
      filter("language", "Language", (row) => SERVERS.get(row.server)?.language ?? ""),
      filter("mechanism", "Mechanism", (row) => row.mechanism),
      filter("release", "Release of", (row) => YEARS(row.server)),
      filter("stands", "Stands for", (row) => row.stands),
      filter("instruments", "Instruments", (row) => (SERVERS.get(row.server)?.instrument ? "only" : "hidden")),
    ],
    always: ["server", ...(NARROW_PAGE ? [] : ["variant"]), "experiment", "date", "version", "age"],
    some: (rows) => {
      const experiments = distinct(rows.map((row) => row.experiment));
      const first = experiments.length === 1 ? DATA.of_sweep[experiments[0]] : [];
      const names = distinct([...first, ...quantitiesOf(rows)]).filter((name) => rows.some((row) => row[name])).slice(0, 4);
      const wrong = rows.some((row) => row.wrong) ? ["wrong"] : [];
      return [...wrong, ...names, ...(rows.some((row) => row.class) ? ["class"] : []), ...(rows.some((row) => row.why) ? ["why"] : [])];
    },
    first: "server", file: "variants",
  });
}

// The servers in their default variants in one experiment, by the CPU time of a reply at the lowest
// rate that all were offered, with their classes; without such a rate by the first quantity.
function ranking(experiment) {
  const ofIt = VARIANTS.filter((row) => row.experiment === experiment && row.plain && !SERVERS.get(row.server)?.instrument);
  const costs = new Map(ofIt.map((row) => [row, (RATES_OF.get(keyOf(row)) ?? []).filter((rate) => rate.rate_rps && rate.cpu_us_per_reply)]).filter(([, rates]) => rates.length));
  const shared = [...costs.values()].map((rates) => rates.map((rate) => rate.rate_rps)).reduce((one, other) => one?.filter((rate) => other.includes(rate)) ?? other, null);
  const lowest = shared?.length ? Math.min(...shared) : null;
  const name = lowest ? "cpu_us_per_reply" : DATA.of_sweep[experiment][0];
  const found = (row) => (lowest ? costs.get(row)?.find((each) => each.rate_rps === lowest)[name] : row[name]);
  const best = DATA.quantities[name].better === "high" ? -1 : 1;
  const known = ofIt.filter(found).sort((a, b) => best * (found(a)[0] - found(b)[0]));
  if (!known.length) return null;
  const values = known.map((row) => value(shownOf(name, found(row)), { at: row.class ? `${titleOf(row.server)}, ${row.class}` : titleOf(row.server), series: "" }));
  const heading = lowest ? `${headingOf(name)} at ${digits(lowest)} req/s` : headingOf(name);
  const classes = known.some((row) => row.class) ? "; after each server its class: those that cannot be told apart share one" : "";
  return { title: `${heading}, each server in its default variant${classes}`, said: summary(heading, "by server", values), spec: dots(values, heading) };
}

function serversView(main) {
  main.append(made("h1", {}, "Every server"),
    made("p", {}, "Each is a folder of servers/. Its page has its settings with their reasons, its curves, its claims and its trials."));
  const charts = new Map([...EXPERIMENTS.keys()].map((name) => [name, ranking(name)]).filter(([, drawn]) => drawn));
  const which = made("select", {}, [...charts.keys()].map((name) => made("option", { value: name }, experimentOf(name))));
  const asked = address.read().params.get("chart") ?? "single-thread";
  if (charts.size) {
    const place = made("div");
    const put = () => place.replaceChildren(chart(charts.get(which.value)));
    if (charts.has(asked)) which.value = asked;
    main.append(section("The servers in one experiment", made("div", { class: "tools" }, field("Experiment", which)), place));
    which.addEventListener("change", () => {
      put();
      keep();
    });
    put();
  }
  const trials = new Map();
  const outcomes = new Map();
  for (const trial of TRIALS) {
    trials.set(trial.server, (trials.get(trial.server) ?? 0) + 1);
    if (!outcomes.get(trial.server)?.startsWith("measured")) outcomes.set(trial.server, trial.outcome);
  }
  // Trials with wrong answers are recorded as "measured, with failures"; the page says what was wrong.
  const wrong = new Set(VARIANTS.filter((row) => row.wrong).map((row) => row.server));
  const state = (server) => (wrong.has(server.server) ? "wrong answers under load" : outcomes.get(server.server));
  const absent = DATA.servers.filter((row) => !trials.has(row.server));
  main.append(made("h2", {}, "All servers"));
  const keep = browse({
    view: "servers", what: "servers", caption: "Every server that has a trial", rows: DATA.servers.filter((row) => trials.has(row.server)), kept: () => ({ chart: which.value }),
    columns: [
      { key: "server", title: "Server", of: (row) => row.title, cell: (row) => linkTo(row.title, "servers", row.server) },
      { key: "language", title: "Language", of: (row) => row.language },
      { key: "post", title: "Post", of: (row) => row.post },
      { key: "release", title: "Release", of: (row) => row.release },
      { key: "year", title: "Year", of: (row) => row.year },
      { key: "experiments", title: "Experiments", of: (row) => row.experiments.map(experimentOf).join(", ") },
      { key: "trials", title: "Trials", of: (row) => trials.get(row.server), number: true },
      { key: "state", title: "State", of: state, cell: (row) => (wrong.has(row.server) ? wrongly(state(row)) : state(row)) },
      { key: "conformance", title: "Conformance", of: (row) => row.conformance },
    ],
    filters: [
      { key: "post", title: "Post", of: (row) => row.post },
      { key: "language", title: "Language", of: (row) => row.language },
      { key: "year", title: "Release of", of: (row) => YEARS(row.server) },
      { key: "state", title: "State", of: state },
    ],
    always: ["server", "language", "release", "year", "experiments", "trials", "state"], first: "server", file: "servers",
    csvColumns: ["server", "title", "language", "post", "release", "year", "origin", "about", "not_run"],
  });
  if (absent.length) {
    main.append(folded(`${counted(absent.length, "server")} without a trial in this dataset`, () => plain("Servers without a trial", ["Server", "Language", "Release", "Why"],
      absent.map((row) => [linkTo(row.title, "servers", row.server), row.language, row.release, row.not_run || "not in this dataset"]))));
  }
}
