"""What `CITATION.cff` says about the project: its version, authors and licence."""

from functools import cache

import yaml

from deathmatch.plan.root import ROOT

CITATION = "CITATION.cff"


@cache
def project() -> dict:
    """Return the fields of the project's CITATION.cff (Citation File Format 1.2.0)."""
    return yaml.safe_load((ROOT / CITATION).read_text())


def version() -> str:
    """Return the project's version, as year.month.number; commits after it have the same."""
    return project()["version"]
