// The page of one server: a description, its settings, and all its measurements.
"use strict";
const COSTS = ["cpu_us_per_reply", "context_switches_per_reply", "server_rss_bytes", "bytes_per_message"];

// A table of variants, with the quantities for which at least one of them has a value.
function numbers(caption, variants, names) {
  const known = names.filter((name) => variants.some((row) => row[name]));
  const text = ["Experiment", "Variant"];
  const rows = variants.map((row) => [
    experimentOf(row.experiment), row.label || "default", String(row.trials), ...known.map((name) => bar(row, name)),
  ]);
  const headings = [...text, "Trials", ...known.map(headingOf)];
  return plain(caption, headings, rows, headings.map((_, at) => at).slice(text.length));
}

function measuredIn(experiment, variants, named, series) {
  const about = EXPERIMENTS.get(experiment);
  const panels = chartsOf(experiment, variants, named, series).map(chart);
  const left = variants.length - few(variants).length;
  return made("section", {}, made("h3", {}, about.title), made("p", { class: "soft" }, about.question),
    left ? made("p", { class: "soft" }, `Charts over the offered rate show ${variants.length - left} of ${variants.length} variants; the tables and the CSV have all.`) : null,
    panels.length ? made("div", { class: "panels" }, panels)
      : made("p", { class: "note" }, "No point of these trials shows the server: the trials below say why."));
}

function settings(server) {
  const parts = [];
  if (server.limits.length) parts.push(plain("Settings that could distort a test, with their reasons", ["Setting", "What it is set to, and why"], server.limits));
  if (server.configurations.length) {
    parts.push(plain("Configurations, the default one first", ["Configuration", "What is different, and why", "Only in", "Settings"],
      server.configurations.map((each) => [each.title, each.about, each.experiments.map(experimentOf).join(", ") || "–", each.settings.join(", ") || "–"])));
  }
  if (server.deviations.length) parts.push(plain("Checks that it is known to fail", ["Check", "What it does instead"], server.deviations));
  return section("Settings, with their reasons", ...parts, facts([
    ["Variants", server.variants], ["Start command", server.run && made("code", {}, server.run)],
    ["Build", server.build && made("pre", {}, server.build)], ["Needs", server.packages.join("; ")],
  ]));
}

function conformance(server, experiments) {
  const checks = experiments.map((name) => [experimentOf(name), EXPERIMENTS.get(name).checks.join("; ") || "none"]);
  return section("Conformance", made("p", {}, server.conformance || "It was not checked in this dataset."),
    checks.length ? plain("Checks of its answers before it is timed", ["Experiment", "Checks"], checks) : null);
}

function claimsOf(server) {
  const found = DATA.claims.filter((claim) => claim.compared.some((one) => one.server === server));
  if (!found.length) return section("Claims", made("p", {}, "No claim's rule compares this server in what was measured."));
  const label = (one) => VARIANTS.find((row) => row.experiment === one.experiment && row.server === one.server && row.variant === one.variant)?.label || "default";
  return section("Claims", plain("Claims whose rule compares it", ["Claim", "Source", "Then", "Now", "Its variants"], found.map((claim) => [
    linkTo(claim.says, "claims", claim.claim), claim.source, claim.then, claim.now,
    distinct(claim.compared.filter((one) => one.server === server).map(label)).slice(0, 4).join("; "),
  ])));
}

function trialsOf(trials) {
  const labels = new Map(VARIANTS.map((row) => [keyOf(row), row.label || "default"]));
  const rows = trials.map((trial) => [
    experimentOf(trial.experiment), labels.get(keyOf(trial)), String(trial.n),
    [trial.outcome, trial.reason].filter(Boolean).join(": "), trial.started_at, digits(trial.wall_s), trial.version, trial.commit, made("code", {}, rawOf(trial)),
  ]);
  const headings = ["Experiment", "Variant", "Trial", "Outcome", "Started", "Time (s)", "Version", "Commit", "Raw logs"];
  return plain("Every trial, with the path of its raw logs; in an archive, the folder", headings, rows);
}

function serverView(main, name) {
  const server = SERVERS.get(name);
  if (!server) {
    main.append(made("h1", {}, "No such server"), made("p", {}, `There is no server ${name}. `, linkTo("Every server", "servers")));
    return;
  }
  const variants = VARIANTS.filter((row) => row.server === name);
  const trials = TRIALS.filter((row) => row.server === name);
  const experiments = distinct(variants.map((row) => row.experiment));
  const rows = (from) => () => from.filter((row) => row.server === name);
  const wrong = distinct(variants.filter((row) => row.wrong).map((row) => `${experimentOf(row.experiment)}: ${row.wrong}`));
  main.append(made("h1", {}, server.title), ...wrong.map((text) => made("p", {}, wrongly(text))), made("p", {}, server.about), facts([
    ["Language", server.language], ["Post", server.post],
    ["Release", [server.release, server.year, server.origin].filter(Boolean).join(", ")], ["Remark", server.remark],
    ["Version measured", server.version],
    ["Instrument", server.instrument && "It measures the harness or a mechanism, so no ranking or count of servers includes it."],
    ["Not run", server.not_run],
  ]));
  if (trials.length) {
    const withRaw = () => rows(TRIALS)().map((trial) => ({ ...trial, raw: rawOf(trial) }));
    main.append(made("p", { class: "tools" }, linkTo("Compare it", "compare", "", { servers: name }),
      saves("Variants as CSV", `${name}-variants`, null, rows(VARIANTS)), saves("Rates as CSV", `${name}-rates`, null, rows(RATES)),
      saves("Trials as CSV", `${name}-trials`, null, withRaw)));
  } else {
    main.append(made("p", { class: "note" }, server.not_run ? `It was not run: ${server.not_run}` : "It was not measured in this dataset."));
  }
  main.append(settings(server));
  if (variants.length) {
    main.append(section("Curves", ...experiments.map((each) => measuredIn(each, variants.filter((row) => row.experiment === each), (row) => row.label || "default", (row) => row.series))));
    const quantities = quantitiesOf(variants);
    const costs = quantities.filter((each) => COSTS.includes(each));
    if (costs.length) main.append(section("Cost", numbers("What an answer costs", variants.filter((row) => costs.some((each) => row[each])), costs)));
    main.append(section("Numbers", numbers("What was measured of each variant", variants, quantities.filter((each) => !COSTS.includes(each)))));
  }
  main.append(conformance(server, experiments), claimsOf(name));
  if (trials.length) main.append(section("Trials", folded(`${counted(trials.length, "trial")}, each with its raw logs`, () => trialsOf(trials))));
  main.append(section("Sources", made("ul", {}, server.sources.map((path) => made("li", {}, made("code", {}, path))))));
}
