"""Entries of the ledger as pages show them: the source, where the data is, and the evidence."""

from deathmatch.analysis import judging, verdict_words
from deathmatch.analysis.ledger import Entry, Verdict

# The label in the paper of what a claim's rule compares: by experiment, then by statistic.
_SHOWN_AT = {
    "backlog": {
        "": "fig-backlog-plateau", "died": "tbl-backlog-systems",
        "concurrent_connections": "sec-backlog-servers",
    },
    "single-thread": {"": "fig-servers-one"},
    "scale-out": {"": "tbl-servers-all"},
    "readiness": {"": "sec-readiness-full", "ended_in_checks": "tbl-readiness-ran"},
    "select-crash": {"": "sec-readiness-crash"},
    "accept-queue": {"": "sec-accept-full"},
    "dynamic": {
        "": "fig-dynamic-plateau", "error_ratio": "sec-dynamic-errors",
        "timeout_share": "sec-dynamic-errors",
        "first_error_rate_rps": "fig-dynamic-curves", "server_rss_bytes": "tbl-dynamic-times",
        "connection_time_mean_us": "tbl-dynamic-times",
    },
    "static": {
        "": "fig-static-replies", "cpu_us_per_reply": "fig-static-cpu",
        "context_switches_per_reply": "tbl-static-cost", "interrupts_per_reply": "tbl-static-cost",
        "response_time_mean_us": "fig-static-response", "server_rss_bytes": "tbl-static-cost",
        "connection_time_mean_us": "fig-static-response",
    },
    "c10k": {"": "sec-c10k-full"},
    "overhead": {"": "fig-overhead-closed"},
    "storage": {"": "tbl-storage-bytes"},
}  # fmt: skip
ELSEWHERE = "tbl-claims-elsewhere"
"""The table of the claims that another dataset decides."""
SOURCES = {
    "walkin2009": "Walkin",
    "williams2009": "Williams",
    "ostinelli2011": "Ostinelli",
    "moritz2012": "Moritz",
    "day2011": "Day",
}


def shown_at(entry: Entry, dataset: str) -> str:
    """Return the label of the figure, table or section of a dataset's paper with an entry's data.

    "" if it has none.
    """
    if entry.dataset != dataset:
        return ELSEWHERE
    labels = _SHOWN_AT.get(entry.experiment, {})
    return next((labels[name] for name in entry.statistics if name in labels), labels.get("", ""))


def details(entry: Entry) -> dict:
    """Return what a claim opens to: {"facts": [heading, text] pairs, "verdicts": …}.

    Each verdict has its heading, its lines of text, and the paths of the raw logs.
    """
    facts = [["Claim", entry.says], ["Said in", f"{entry.place} ({entry.role})"]]
    facts += [["In the source's words", entry.quotation]] if entry.quotation else []
    facts += [["Rule", entry.rule]]
    if entry.published is not None:
        facts.append(["The source's own", verdict_words.short(entry.published)])
    verdicts = [_verdict(when, verdict) for when, verdict in entry.verdicts.items()]
    return {"facts": facts, "verdicts": verdicts}


def compared(verdict: Verdict) -> str:
    """Return what a verdict compares, each side with its value, for a cell."""
    return "; ".join(_sides(verdict))


def _sides(verdict: Verdict) -> list[str]:
    """Return a line for each side: what it is, and its value over trials."""
    lines = []
    for side in verdict.sides:
        effect = verdict_words.effect_text(side.interval)
        value = verdict_words.with_unit(effect, verdict.unit) if effect else "no value"
        lines.append(f"{side.what or 'all servers'}: {value}")
    return lines


def _verdict(when: str, verdict: Verdict) -> dict:
    lines = [verdict_words.effect_phrase(verdict), *_sides(verdict)]
    if verdict.ages:
        time = "of the time" if verdict.of_the_time else "the oldest that runs, or today's"
        lines.append(f"On {'; '.join(age.phrase for age in verdict.ages)}: {time}.")
    lines += [f"{remark[0].upper()}{remark[1:]}." for remark in verdict_words.remarks(verdict)]
    if verdict.direction:
        lines.append(f"The direction alone: {verdict.direction}.")
    lines += [
        f"Needed: {need.needed}; there: {need.there} ({'met' if need.met else 'not met'})."
        for need in verdict.needs
    ]
    if verdict.verdict == judging.NOT_RUN:
        lines.append(f"Not run: {verdict.why}.")
    return {
        "heading": f"{when.capitalize()}: {verdict.verdict}",
        "lines": list(filter(None, lines)),
        "raw": list(dict.fromkeys(side.raw for side in verdict.sides if side.raw)),
    }
