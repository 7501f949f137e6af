"""Which claims a testbed can decide that the committed dataset could not, for want of CPUs.

In: how many CPUs the client leaves to the server. Out: claims by the place that decides them.
"""

from collections.abc import Mapping

import polars as pl

from deathmatch.analysis import published
from deathmatch.analysis.judging import DECIDED
from deathmatch.plan import files
from deathmatch.plan.root import ROOT

REFERENCE = "reference"
HERE = ""


def by_place(left: float) -> dict[str, list[str]]:
    """Return the claims that need more CPU time than `reference` had, by what decides them.

    HERE, where the CPUs that are left to the server are enough; else the testbed that a claim's
    need `cpu_left` names. What `reference` decided, then or now, is left out, and so are claims on
    servers that cannot run here.
    """
    decided = _decided()
    places: dict[str, list[str]] = {}
    for claim in published.claims():
        need = claim.get("needs", {}).get("cpu_left")
        if need is None or claim["id"] in decided or not _runs(claim):
            continue
        place = HERE if left >= need["at_least"] else need.get("on")
        if place is not None:
            places.setdefault(place, []).append(claim["id"])
    return places


def text(places: Mapping[str, list[str]], left: float) -> list[str]:
    """Return a line for each place, and none where there is no such claim."""
    lines = []
    for place, claims in sorted(places.items()):
        if place == HERE:
            where = f"here, where the client leaves the server {left:g} CPUs"
        elif files.testbed(place).server.emulated_cpus is not None:
            where = f"by emulation, on the testbed {place}"
        else:
            where = f"on the testbed {place}"
        count = f"{len(claims)} claim{'s' if len(claims) > 1 else ''}"
        lines.append(f"{count} that {REFERENCE} could not decide, {where}: {', '.join(claims)}")
    return lines


def _runs(claim: dict) -> bool:
    """Return whether all servers that a claim names can run here."""
    named = {selector.get("server") for selector in published.selectors(claim["rule"])}
    return all(files.server(name).runs for name in named - {None})


def _decided() -> set[str]:
    """Return the claims that the committed ledger decides; none if it is not there."""
    file = ROOT / "figures" / REFERENCE / "claims.parquet"
    if not file.is_file():
        return set()
    ledger = pl.read_parquet(file, columns=["claim", "then", "now"])
    either = pl.any_horizontal(pl.col("then", "now").is_in(sorted(DECIDED)))
    return set(ledger.filter(either)["claim"])
