// The ledger: every claim with its rule, both verdicts and their evidence.
"use strict";
function claimsView(main) {
  main.append(made("h1", {}, "Every claim"), made("p", {}, "A statement of a post, the rule that decides it, and two verdicts: then, on the release "
    + "and settings nearest to the post's that ran; now, on today's. Open a claim for its rule and its evidence."));
  browse({
    view: "claims", what: "claims", caption: "Every claim, with both verdicts", rows: DATA.claims,
    columns: [
      { key: "source", title: "Source", of: (row) => row.source },
      { key: "experiment", title: "Experiment", of: (row) => experimentOf(row.experiment) },
      { key: "says", title: "Claim", of: (row) => row.says, cell: (row) => linkTo(row.says, "claims", row.claim) },
      { key: "then", title: "Then", of: (row) => row.then },
      { key: "now", title: "Now", of: (row) => row.now },
      { key: "published", title: "Post's own", of: (row) => row.published },
    ],
    filters: [
      { key: "source", title: "Source", of: (row) => row.source },
      { key: "experiment", title: "Experiment", of: (row) => row.experiment, said: experimentOf },
      { key: "then", title: "Then", of: (row) => row.then },
      { key: "now", title: "Now", of: (row) => row.now },
    ],
    always: ["source", "experiment", "says", "then", "now", "published"], first: "source", file: "claims",
    csvColumns: ["claim", "source", "experiment", "says", "then", "now", "published"],
  });
}

function claimView(main, name) {
  const claim = DATA.claims.find((each) => each.claim === name);
  if (!claim) {
    main.append(made("h1", {}, "No such claim"), made("p", {}, `There is no claim ${name}. `, linkTo("Every claim", "claims")));
    return;
  }
  main.append(made("h1", {}, claim.says), facts([...claim.facts.filter(([title]) => title !== "Claim"), ["Experiment", experimentOf(claim.experiment)]]));
  for (const verdict of claim.verdicts) {
    main.append(section(verdict.heading, verdict.lines.map((line) => made("p", {}, line)),
      verdict.raw.map((path) => made("p", { class: "soft" }, "Raw logs: ", made("code", {}, path)))));
  }
  const servers = distinct(claim.compared.map((one) => one.server));
  if (servers.length) {
    main.append(section("What it compares", made("ul", {}, servers.map((server) => made("li", {}, linkTo(titleOf(server), "servers", server)))),
      servers.length > 1 ? made("p", {}, linkTo("Side by side", "compare", "", { servers: servers.slice(0, 6).join(","), experiment: claim.compared[0].experiment, variants: "all" })) : null));
  }
}
