"""Has an earlier trial of a variant passed the conformance checks in full?"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from deathmatch.data import records
from deathmatch.errors import UserError
from deathmatch.measure.conformance import probe
from deathmatch.plan.record import MEASURED
from deathmatch.plan.trial import Full, conformance_key


def full(folder: Path, record: Mapping[str, Any]) -> Full:
    """Return which trial of the variant has the checks in full: an earlier one, or this one.

    `folder` is the trial's own, `record` what its record has before it is measured.
    """
    key = conformance_key(record)
    for file in sorted(folder.parent.glob("[0-9]*/trial.json")):
        own = Full(int(file.parent.name), key)
        if file.parent == folder:
            continue
        try:
            other = records.read(file)
        except UserError:
            # It is reported when the tables are made.
            continue
        if other["outcome"] in MEASURED and other.get("full_conformance") == own.record():
            return own
    return Full(record["n"], key)


def short(requests: list[dict], known: Collection[str]) -> list[dict]:
    """Return the requests of the short form: the usual one, and those that are known to fail."""
    usual = probe(requests, known)
    return [each for each in requests if each is usual or each["name"] in known]
