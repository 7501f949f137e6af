"""The claims with their rules and evidence, and which variants stand for then and for now.

In: the ledger of a dataset (`deathmatch.analysis.claims`). Out: dicts of text alone, with the
facts and the evidence of each verdict (`deathmatch.paper.claim_rows`).
"""

from collections.abc import Sequence

from deathmatch.analysis import selecting, verdict_words
from deathmatch.analysis.ledger import WHEN, Entry
from deathmatch.analysis.published import Claim
from deathmatch.paper import claim_rows
from deathmatch.paper.explore.variants import Roles

Evidence = dict[str, list[dict]]
"""By claim, the variants that its rule selects: {"when", "experiment", "server", "variant"}."""


def rows(entries: Sequence[Entry], evidence: Evidence) -> list[dict]:
    """Return a row for each claim, in the order of claims.toml."""
    return [
        {
            "claim": entry.claim,
            "source": claim_rows.post(entry.source),
            "experiment": entry.experiment,
            "says": entry.says,
            "then": entry.then.verdict,
            "now": entry.now.verdict,
            "published": entry.published and verdict_words.short(entry.published),
            **claim_rows.details(entry),
            "compared": evidence[entry.claim],
        }
        for entry in entries
    ]


def evidence(dataset: str, known: Sequence[Claim]) -> Evidence:
    """Return which variants each claim compares, then and now."""
    return {
        claim.id: [
            {"when": when, "experiment": experiment, "server": server, "variant": variant}
            for when in WHEN
            for experiment, server, variant in _compared(dataset, claim, when)
        ]
        for claim in known
    }


def roles(evidence: Evidence) -> Roles:
    """Return the verdicts, "then" and "now", for which each variant is compared."""
    by_variant: Roles = {}
    for variant in (variant for many in evidence.values() for variant in many):
        key = (variant["experiment"], variant["server"], variant["variant"])
        by_variant.setdefault(key, set()).add(variant["when"])
    return by_variant


def _compared(dataset: str, claim: Claim, when: str) -> list[tuple[str, str, str]]:
    variants = []
    for selector in (selector for one in claim.compared(when) for selector in one.sides):
        experiment = selector.get("experiment", claim.experiment)
        for plain in selecting.divided_selectors(selector):
            frame = selecting.selected(dataset, experiment, plain)
            if frame is not None:
                pairs = frame.select("server", "variant").unique(maintain_order=True).rows()
                variants += [(experiment, *pair) for pair in pairs]
    return list(dict.fromkeys(variants))
