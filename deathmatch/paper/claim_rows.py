"""Entries of the ledger as pages show them: the source, the claim and its evidence."""

from deathmatch.analysis import judging, verdict_words
from deathmatch.analysis.ledger import Entry, Verdict

# The authors of the sources, in the order of the ledger.
SOURCES = {
    "walkin2009": "Walkin",
    "williams2009": "Williams",
    "ostinelli2011": "Ostinelli",
    "moritz2012": "Moritz",
    "day2011": "Day",
}


def post(source: str) -> str:
    """Return the author of a source; a name that is not in SOURCES stays as it is."""
    return SOURCES.get(source, source)


def linked(entry: Entry) -> str:
    """Return what a claim says, in Markdown, as a link to its evidence in the explorer."""
    return f"[{entry.says}](explore.html#/claims/{entry.claim})"


def details(entry: Entry) -> dict:
    """Return the details of a claim: {"facts": [heading, text] pairs, "verdicts": …}.

    Each verdict has its heading, its lines of text, and the paths of the raw logs.
    """
    facts = [["Claim", entry.says], ["Said in", f"{entry.place} ({entry.role})"]]
    facts += [["In the source's words", entry.quotation]] if entry.quotation else []
    facts += [["Rule", entry.rule]]
    if entry.published is not None:
        facts.append(["The source's own", verdict_words.short(entry.published)])
    verdicts = [_verdict(when, verdict) for when, verdict in entry.verdicts.items()]
    return {"facts": facts, "verdicts": verdicts}


def _verdict(when: str, verdict: Verdict) -> dict:
    lines = [verdict_words.effect_phrase(verdict)]
    for side in verdict.sides:
        effect = verdict_words.effect_text(side.interval)
        value = verdict_words.with_unit(effect, verdict.unit) if effect else "no value"
        lines.append(f"{side.what or 'all servers'}: {value}")
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
