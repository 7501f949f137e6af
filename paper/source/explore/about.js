// The machines and commits of the dataset, how to cite it, and how to add a server.
"use strict";
function machines(about) {
  const rows = about.machines.map((one) => [
    one.cpu, String(one.cpus), `${digits(one.memory_bytes / 2 ** 30)} GiB`, `Linux ${one.kernel}`, one.os, one.toolchain, one.testbed, digits(one.trials),
  ]);
  return plain(`Hardware, kernel and toolchain of ${about.dataset}, as each trial recorded them`, ["CPU", "CPUs", "Memory", "Kernel", "System", "Toolchain", "Testbed", "Trials"], rows, [1, 2, 7]);
}

function measuredOn(about) {
  const parts = about.machines.length ? [machines(about), made("p", {}, about.place), made("p", {}, about.cannot)]
    : [made("p", { class: "note" }, "No trial was measured, so no machine is recorded.")];
  const commits = about.commits.length ? folded(`${counted(about.commits.length, "commit")} of the study`,
    () => plain("Commits with which trials were measured; -dirty: with uncommitted changes", ["Commit", "Trials"], about.commits.map((one) => [one.commit ?? "not recorded", digits(one.trials)]), [1])) : null;
  const dates = about.began ? `, ${distinct([about.began, about.ended]).join(" to ")}` : "";
  return section(`The dataset ${about.dataset}`, made("p", {}, `${about.title}${about.title ? ": " : ""}${counted(about.trials, "trial")} of ${counted(about.servers, "server")}, ${digits(about.measured)} of them measured${dates}.`),
    about.remark ? made("p", {}, about.remark) : null, about.waived ? made("p", {}, about.waived) : null, ...parts, commits);
}

function versions() {
  const rows = DATA.servers.filter((server) => server.version).map((server) => [linkTo(server.title, "servers", server.server), server.version]);
  return rows.length ? folded(`Versions of ${counted(rows.length, "server")}`, () => plain("Version of each server that was measured", ["Server", "Version"], rows)) : null;
}

function aboutView(main) {
  const { citation } = DATA;
  const steps = [
    ["./shell deathmatch new-server mine --kind one-request", "makes servers/mine/ with a small server that passes; replace it with yours"],
    ["./shell deathmatch build mine", "builds it and shows its version"],
    ["./shell snakemake --config dataset=smoke servers=mine", "checks its answers, measures it, and writes a report on it and its explorer"],
    ["./shell snakemake --config dataset=quick", "shows the findings of the study on your machine"],
  ];
  const findings = DATA.findings.map((one) => [one.sentence, one.number, one.verdict]);
  main.append(made("h1", {}, "About"), section("The study's findings", plain("Each finding with its number, and whether it holds in this dataset", ["Finding", "Number", "Holds?"], findings)), measuredOn(DATA.about), versions(),
    section("How to cite", made("p", {}, citation.sentence), made("p", {}, citation.message), made("pre", { tabindex: 0 }, citation.bibtex), made("p", {}, `Licence: ${citation.licence}.`)),
    section("Add your server", made("p", {}, "A server is one folder. In a clone of the study, on Debian 12 (README.md has Nix and containers too):"),
      made("dl", { class: "steps" }, steps.flatMap(([command, why]) => [made("dt", {}, made("code", {}, command)), made("dd", {}, why)])),
      made("p", {}, "servers/README.md has every key of server.toml; .github/CONTRIBUTING.md says how to submit a server or a dataset.")),
    section("This page", made("p", {}, `Version ${DATA.version} of Deathmatch made this file, which fetches nothing. ` + "The address holds what is shown, so a copied link opens the same view. "
      + "Tables are sorted by DataTables (MIT licence), charts drawn by Vega-Lite (BSD licence). "), made("p", {}, made("a", { href: `${DATA.paper}.html` }, DATA.paper === "report" ? "The report" : "The paper"), " explains what it means.")));
}
