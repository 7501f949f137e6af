// Releases of each system over the years: what a reply costs, a chart for each system.
"use strict";
const COST = "cpu_us_per_reply";

function releasesOf(shown) {
  const caption = `${headingOf(COST)} of each release: median over trials, interval, number of trials`;
  const rows = shown.releases.map((row) => [
    linkTo(row.release, "servers", row.server), String(row.year), row.runtime, made("span", { class: "measured-cell" }, told(row[COST])),
  ]);
  return plain(caption, ["Release", "Year", "Runtime", headingOf(COST)], rows, [3]);
}

function historyOf(shown) {
  const panels = shown.charts.map(({ system, spec }) => {
    const releases = shown.releases.filter((row) => row.system === system);
    const ends = distinct([releases[0], releases.at(-1)]).map((row) => `${row.release} (${row.year}) ${told(row[COST])}`);
    return chart({ title: system, said: `${headingOf(COST)} over the year of release: ${ends.join("; ")}.`, spec });
  });
  const columns = ["system", "release", "year", "runtime", "server", COST];
  return section(`Measured in the dataset ${shown.dataset}`,
    made("p", {}, `Offered: ${shown.rates} requests per second. ${shown.origin}`),
    made("h3", {}, headingOf(COST)), made("div", { class: "panels small" }, panels),
    folded(`${digits(shown.releases.length)} releases in numbers`, () => releasesOf(shown)),
    made("p", { class: "tools" }, saves("Releases as CSV", `history-${shown.dataset}`, columns, () => shown.releases)),
    made("p", { class: "soft" }, "Tables: ", shown.sources.flatMap((path, at) => [at ? ", " : "", made("code", {}, path)])));
}

function historyView(main) {
  main.append(made("h1", {}, "Releases over the years"),
    made("p", {}, "Each chart is a system and each mark a release. All releases of a system run the same program on the same machine at the same rates. "
      + "Colour and shape show the language's runtime, a bar the interval over trials. A dashed line leads to the next release on another runtime. "
      + "All charts have the same axes; the axis of the cost is logarithmic."),
    definitionsOf([COST]), ...DATA.history.map(historyOf));
}
