// The view of all variants: one row each, with what was measured of it.
"use strict";
const YEARS = (server) => (SERVERS.get(server)?.year ? String(SERVERS.get(server).year) : "");

// Columns of text that say which variant a row is; the rest are quantities.
const DESCRIBED = [
  { key: "server", title: "Server", of: (row) => titleOf(row.server), cell: (row) => linkTo(titleOf(row.server), "servers", row.server) },
  { key: "variant", title: "Variant", of: (row) => row.label || "default" },
  { key: "experiment", title: "Experiment", of: (row) => experimentOf(row.experiment) },
  { key: "post", title: "Post", of: (row) => EXPERIMENTS.get(row.experiment).post },
  { key: "language", title: "Language", of: (row) => SERVERS.get(row.server)?.language ?? "" },
  { key: "mechanism", title: "Mechanism", of: (row) => row.mechanism, help: "How it waits for many connections" },
  { key: "release", title: "Release", of: (row) => SERVERS.get(row.server)?.release ?? "" },
  { key: "year", title: "Year", of: (row) => SERVERS.get(row.server)?.year ?? null, help: "Of the release" },
  { key: "stands", title: "Stands for", of: (row) => row.stands, help: "In the verdicts on the claims" },
  ...(SEVERAL ? [{ key: "dataset", title: "Dataset", of: (row) => row.dataset, rank: (row) => (row.dataset === DATA.dataset ? 0 : 1) }] : []),
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
  const { trials, measured, servers } = DATASETS.get(DATA.dataset);
  main.append(made("h1", {}, "Every variant"),
    made("p", {}, `The dataset ${DATA.dataset} has ${digits(trials)} trials of ${digits(servers)} servers; ${digits(measured)} were measured. `
      + "A variant is a server with its settings in one experiment. The number is the median over trials, the small ones its interval; "
      + "≥ marks a server that answered all that was offered, and may do more. The longest bar is the highest value in the same experiment."),
    definitionsOf(Object.keys(DATA.quantities)));
  if (!VARIANTS.length) {
    main.append(made("p", { class: "note" }, "Nothing was measured in this dataset yet."));
    return;
  }
  const filter = (key, title, of) => ({ key, title, of });
  // The page begins with one experiment, its best first.
  const begun = EXPERIMENTS.has("single-thread") ? "single-thread" : [...EXPERIMENTS.keys()][0];
  const headline = DATA.of_sweep[begun][0];
  const best = headline && VARIANTS.some((row) => row.experiment === begun && row[headline]);
  browse({
    view: "variants", what: "variants", caption: "Every variant, with what was measured of it", rows: VARIANTS,
    columns: [...DESCRIBED, ...quantitiesOf(VARIANTS).map(quantityColumn)],
    filters: [
      filter("post", "Post", (row) => EXPERIMENTS.get(row.experiment).post),
      { ...filter("experiment", "Experiment", (row) => row.experiment), said: experimentOf, initial: begun },
      filter("language", "Language", (row) => SERVERS.get(row.server)?.language ?? ""),
      filter("mechanism", "Mechanism", (row) => row.mechanism),
      filter("release", "Release of", (row) => YEARS(row.server)),
      filter("stands", "Stands for", (row) => row.stands),
      { ...filter("instruments", "Instruments", (row) => (SERVERS.get(row.server)?.instrument ? "only" : "hidden")), initial: "hidden" },
      ...(SEVERAL ? [filter("dataset", "Dataset", (row) => row.dataset)] : []),
    ],
    always: ["server", "variant", "experiment", ...(SEVERAL ? ["dataset"] : [])],
    some: (rows) => {
      const experiments = distinct(rows.map((row) => row.experiment));
      const first = experiments.length === 1 ? DATA.of_sweep[experiments[0]] : [];
      const quantities = distinct([...first, ...quantitiesOf(rows)]).filter((name) => rows.some((row) => row[name])).slice(0, 4);
      const wrong = rows.some((row) => row.wrong) ? ["wrong"] : [];
      return [...wrong, ...quantities, ...(rows.some((row) => row.why) ? ["why"] : [])];
    },
    first: "server", initially: best ? `${DATA.quantities[headline].better === "high" ? "-" : ""}${headline}` : "server",
    pinned: SEVERAL ? "dataset" : undefined, file: "variants",
  });
}

function serversView(main) {
  main.append(made("h1", {}, "Every server"),
    made("p", {}, "Each is a folder of servers/. Its page has its settings with their reasons, its curves, its claims and its trials."));
  const trials = new Map();
  const outcomes = new Map();
  for (const trial of TRIALS) {
    trials.set(trial.server, (trials.get(trial.server) ?? 0) + 1);
    if (!outcomes.get(trial.server)?.startsWith("measured")) outcomes.set(trial.server, trial.outcome);
  }
  // "measured, with failures" is what wrong answers were recorded as: they are said in their own words.
  const wrong = new Set(VARIANTS.filter((row) => row.wrong).map((row) => row.server));
  const state = (server) => (wrong.has(server.server) ? "wrong answers under load" : outcomes.get(server.server)) ?? (server.not_run ? "cannot run here" : "not in this dataset");
  browse({
    view: "servers", what: "servers", caption: "Every server", rows: DATA.servers,
    columns: [
      { key: "server", title: "Server", of: (row) => row.title, cell: (row) => linkTo(row.title, "servers", row.server) },
      { key: "language", title: "Language", of: (row) => row.language },
      { key: "post", title: "Post", of: (row) => row.post },
      { key: "release", title: "Release", of: (row) => row.release },
      { key: "year", title: "Year", of: (row) => row.year },
      { key: "experiments", title: "Experiments", of: (row) => row.experiments.map(experimentOf).join(", ") },
      { key: "trials", title: "Trials", of: (row) => trials.get(row.server) ?? 0, number: true },
      { key: "state", title: "State", of: state, cell: (row) => (wrong.has(row.server) ? wrongly(state(row)) : state(row)) },
      { key: "conformance", title: "Conformance", of: (row) => row.measured[0]?.conformance ?? "" },
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
}
