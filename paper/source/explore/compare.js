// Two or more servers side by side in one experiment.
"use strict";
function compareView(main) {
  const { params } = address.read();
  const chosen = (params.get("servers") ?? "").split(",").filter((name) => VARIANTS.some((row) => row.server === name));
  const all = params.get("variants") === "all";
  const shared = [...EXPERIMENTS.keys()].filter((name) => chosen.every((server) => VARIANTS.some((row) => row.server === server && row.experiment === name)));
  const experiment = shared.includes(params.get("experiment")) ? params.get("experiment") : shared[0];

  main.append(made("h1", {}, "Side by side"));
  if (!VARIANTS.length) {
    main.append(made("p", { class: "note" }, "Nothing was measured in this dataset yet."));
    return;
  }
  const go = (more) => {
    location.hash = address.of("compare", "", {
      servers: chosen.join(","), experiment: params.get("experiment"), variants: all ? "all" : "", ...more,
    });
  };

  const measured = distinct(VARIANTS.map((row) => row.server)).sort((a, b) => titleOf(a).localeCompare(titleOf(b), "en"));
  const add = made("select", {}, made("option", { value: "" }, "choose one"),
    measured.filter((name) => !chosen.includes(name)).map((name) => made("option", { value: name }, titleOf(name))));
  add.addEventListener("change", () => add.value && go({ servers: [...chosen, add.value].join(",") }));
  const tools = made("div", { class: "tools" }, field("Add a server", add));
  if (chosen.length) {
    const which = made("select", {}, shared.map((name) => made("option", { value: name }, experimentOf(name))));
    which.value = experiment ?? "";
    which.addEventListener("change", () => go({ experiment: which.value }));
    const every = made("input", { type: "checkbox" });
    every.checked = all;
    every.addEventListener("change", () => go({ variants: every.checked ? "all" : "" }));
    tools.append(field("Experiment", which), made("label", {}, every, " every variant"));
  }
  main.append(tools);

  if (!chosen.length) {
    main.append(made("p", {}, "Choose two servers or more."));
    return;
  }
  main.append(made("ul", { class: "chips" }, chosen.map((name) => {
    const away = made("button", { type: "button", "aria-label": `Remove ${titleOf(name)}` }, "×");
    away.addEventListener("click", () => go({ servers: chosen.filter((each) => each !== name).join(",") }));
    return made("li", {}, linkTo(titleOf(name), "servers", name), " ", away);
  })));
  if (!experiment) {
    main.append(made("p", { class: "note" }, "No experiment has measured all of them."));
    return;
  }
  const mine = VARIANTS.filter((row) => row.experiment === experiment && chosen.includes(row.server));
  // A server whose default variant was not measured shows its other variants.
  const plainOnes = new Set(mine.filter((row) => row.plain).map((row) => row.server));
  const variants = mine.filter((row) => all || row.plain || !plainOnes.has(row.server));
  const series = (row) => [titleOf(row.server), row.series].filter(Boolean).join(", ");
  main.append(section("Curves", measuredIn(experiment, variants, nameOf, series)));
  const names = quantitiesOf(variants);
  const cells = names.map((name) => [headingOf(name), ...variants.map((row) => bar(row, name))]);
  const caption = "Medians over trials with their intervals. The longest bar is the highest value in the experiment. "
    + "Each number covers all rates that its variant was offered; the curves compare at equal rates.";
  main.append(section("Numbers side by side", plain(caption, ["Quantity", ...variants.map(nameOf)], [["trials", ...variants.map((row) => String(row.trials))], ...cells],
    variants.map((_, at) => at + 1)), definitionsOf(names), made("p", { class: "tools" }, saves("Save as CSV", `compare-${experiment}`, null, () => variants)),
  made("p", { class: "soft" }, "No ratio is given, since these trials were not run as pairs: ",
    made("code", {}, `./shell deathmatch compare ${chosen.slice(0, 2).concat("SERVER").slice(0, 2).join(" ")}`), " measures one, with its interval.")));
}
