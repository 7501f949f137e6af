// Releases of each system over the years: what was measured of each, a chart for each system.
"use strict";

// Only a capacity may be missing where it was searched for: then the row has the reason.
const toldOf = (row, { name }) => (row[name] ? told(row[name]) : row.why_no_capacity ?? told(null));

function releasesOf({ measures, releases }) {
  const caption = "Each release: median over trials, interval, number of trials";
  const rows = releases.map((row) => [
    linkTo(row.release, "servers", row.server), String(row.year), row.runtime,
    ...measures.map((measure) => made("span", { class: "measured-cell" }, toldOf(row, measure))),
  ]);
  const headings = measures.map(({ heading }) => heading);
  return plain(caption, ["Release", "Year", "Runtime", ...headings], rows, headings.map((_, at) => 3 + at));
}

function panelsOf(measure, releases) {
  const panels = measure.charts.map(({ system, spec }) => {
    const mine = releases.filter((row) => row.system === system);
    const ends = distinct([mine[0], mine.at(-1)]).map((row) => `${row.release} (${row.year}) ${toldOf(row, measure)}`);
    return chart({ title: system, said: `${measure.heading} over the year of release: ${ends.join("; ")}.`, spec });
  });
  return [made("h3", {}, measure.heading), made("div", { class: "panels small" }, panels)];
}

function historyOf(shown) {
  const { measures, releases } = shown;
  const columns = ["system", "release", "year", "runtime", "server", ...measures.map(({ name }) => name)];
  return section(`Measured in the dataset ${shown.dataset}`,
    made("p", {}, `Offered: ${shown.rates} requests per second. ${shown.origin}`),
    computedAs(measures.map(({ definition }) => definition)),
    ...measures.flatMap((measure) => panelsOf(measure, releases)),
    folded(`${digits(releases.length)} releases in numbers`, () => releasesOf(shown)),
    made("p", { class: "tools" }, saves("Releases as CSV", `history-${shown.dataset}`, columns, () => releases)),
    made("p", { class: "soft" }, "Tables: ", shown.sources.flatMap((path, at) => [at ? ", " : "", made("code", {}, path)])));
}

function historyView(main) {
  main.append(made("h1", {}, "Releases over the years"),
    made("p", {}, "Each chart is a system and each mark a release. All releases of a system run the same program on the same machine at the same rates. "
      + "Colour and shape show the language's runtime, a bar the interval over trials. A dashed line leads to the next release on another runtime; ≥ marks a rate at which the client was the limit. "
      + "All charts of a quantity have the same axes, which are logarithmic."),
    ...DATA.history.map(historyOf));
}
