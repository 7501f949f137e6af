"""Rows of the ledger as pages show them: the source's name, where the data is, and the evidence."""

from deathmatch.analysis import judging, phrases, verdict_words

# The label in the paper of what a claim's rule compares: by experiment, then by statistic.
_SHOWN_AT = {
    "backlog": {
        "": "fig-backlog-plateau", "died": "tbl-backlog-systems",
        "concurrent_connections": "sec-backlog-servers",
    },
    "single-thread": {"": "fig-servers-one"},
    "scale-out": {"": "tbl-servers-all"},
    "readiness": {"": "sec-readiness-full"},
    "select-crash": {"": "sec-readiness-crash"},
    "accept-queue": {"": "sec-accept-full"},
    "dynamic": {
        "": "fig-dynamic-plateau", "error_ratio": "tbl-dynamic-errors",
        "timeout_share": "tbl-dynamic-errors",
        "first_error_rate_rps": "fig-dynamic-curves", "server_rss_bytes": "tbl-dynamic-times",
    },
    "static": {
        "": "fig-static-replies", "cpu_us_per_reply": "fig-static-cpu",
        "context_switches_per_reply": "tbl-static-cost", "interrupts_per_reply": "tbl-static-cost",
        "response_time_mean_us": "fig-static-response", "server_rss_bytes": "tbl-static-cost",
    },
    "c10k": {"": "sec-c10k-full"},
    "overhead": {"": "fig-overhead-closed"},
    "storage": {"": "tbl-storage-bytes"},
}  # fmt: skip
SOURCES = {
    "walkin2009": "Walkin",
    "williams2009": "Williams",
    "ostinelli2011": "Ostinelli",
    "moritz2012": "Moritz",
    "day2011": "Day",
}


def shown_at(row: dict) -> str:
    """Return the label of the figure, table or section with a ledger row's data; "" if none."""
    labels = _SHOWN_AT.get(row["experiment"], {})
    return next((labels[name] for name in row["statistics"] if name in labels), labels.get("", ""))


def details(row: dict) -> dict:
    """Return what a claim opens to: {"facts": [heading, text] pairs, "verdicts": …}.

    Each verdict has its heading, its lines of text, and the paths of the raw logs.
    """
    facts = [["Claim", row["says"]], ["Said in", f"{row['place']} ({row['role']})"]]
    facts += [["Rule", row["rule"]]]
    if row["published"] is not None:
        facts.append(["The source's own", short(row["published"])])
    verdicts = [_verdict(row, when) for when in verdict_words.whens(row["same"])]
    return {"facts": facts, "verdicts": verdicts}


def _verdict(row: dict, when: str) -> dict:
    names = ("sides", "needs", "unit", "direction", "why")
    evidence = {name: row[f"{when}_{name}"] for name in names}
    lines = [verdict_words.effect_phrase(row, when)]
    for side in evidence["sides"]:
        value = verdict_words.effect_text(side | {"effect": side["median"]})
        unit = f" {evidence['unit']}" if evidence["unit"] and value else ""
        number, comma, n = value.partition(", n")
        lines.append(f"{side['what'] or 'all servers'}: {number or 'no value'}{unit}{comma}{n}")
    if evidence["direction"]:
        lines.append(f"The direction alone: {evidence['direction']}.")
    lines += [
        f"Needed: {need['needed']}; there: {need['there']} ({'met' if need['met'] else 'not met'})."
        for need in evidence["needs"]
    ]
    if row[when] == judging.NOT_RUN:
        lines.append(f"Not run: {evidence['why']}.")
    title = "Then and now" if row["same"] else when.capitalize()
    raw = list(dict.fromkeys(side["raw"] for side in evidence["sides"]))
    return {"heading": f"{title}: {row[when]}", "lines": list(filter(None, lines)), "raw": raw}


def short(value: float) -> str:
    """Return a number to three significant digits, whole from a thousand on."""
    return phrases.number(value) if abs(value) >= 1000 else f"{value:.3g}"
