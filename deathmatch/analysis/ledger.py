"""The ledger's types: an entry for each claim, with its verdicts; as a frame, and in a file.

A run computes the ledger of a dataset once for its notebooks and explorer. The rules of Snakemake
that need it name the folder of the files in the environment variable FOLDER; nothing else reads
them, so no file is older than its tables. Entries are pickled, because the same run writes and
reads them.
"""

import os
import pickle
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from deathmatch.analysis.findings import Result
from deathmatch.analysis.judging import UNREACHED
from deathmatch.analysis.releases import Age
from deathmatch.analysis.stats import NO_TRIAL, Interval

WHEN = ("then", "now")
BOTH = "then and now"


@dataclass(frozen=True)
class Need:
    """A condition that data must reach to decide a claim, and what they reached, in words."""

    needed: str
    there: str
    met: bool


@dataclass(frozen=True)
class Side:
    """One side of a comparison: the variant in words, and its value over trials.

    `raw` is the folder of the trials' raw logs, or their archive and the folder in it; empty if the
    dataset keeps only tables.
    """

    what: str
    interval: Interval
    raw: str


@dataclass(frozen=True)
class Verdict:
    """A verdict on a claim, with its evidence.

    `interval`, `as_claimed`, `direction` and `on_edge` are those of its `judging.Judgement`, and
    `error` is `judging.error` of that; `fragile`: the corrections for testing all claims and
    findings together that it fails. `ages` are the releases that the rule compares; `of_the_time`:
    all are of the source's time. `why` says why it was not run, or which condition was not reached;
    `quantity` and `unit` say what was measured. `sides` are a, then b.
    """

    verdict: str
    interval: Interval = NO_TRIAL
    as_claimed: bool = False
    direction: str | None = None
    on_edge: bool = False
    error: float | None = None
    fragile: str = ""
    ages: tuple[Age, ...] = ()
    of_the_time: bool = False
    why: str = ""
    quantity: str = ""
    unit: str = ""
    sides: tuple[Side, ...] = ()
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One claim with both verdicts.

    `published` is the source's own ratio, `same` whether one variant stands for then and now;
    `quotation` has the source's words that the rule is made from, empty where claims.toml keeps
    none.
    """

    claim: str
    source: str
    place: str
    role: str
    experiment: str
    says: str
    rule: str
    statistics: tuple[str, ...]
    published: float | None
    same: bool
    then: Verdict
    now: Verdict
    quotation: str = ""

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdicts by WHEN; one by BOTH where it is the same."""
        return {BOTH: self.now} if self.same else {"then": self.then, "now": self.now}


_SIDE = {
    "what": pl.String, "median": pl.Float64, "low": pl.Float64, "high": pl.Float64,
    "trials": pl.Int64, "raw": pl.String,
}  # fmt: skip
_NEED = {"needed": pl.String, "there": pl.String, "met": pl.Boolean}
_VERDICT = {
    "": pl.String, "effect": pl.Float64, "low": pl.Float64, "high": pl.Float64, "trials": pl.Int64,
    "as_claimed": pl.Boolean, "direction": pl.String, "on_edge": pl.Boolean, "error": pl.Float64,
    "fragile": pl.String, "releases": pl.List(pl.String), "of_the_time": pl.Boolean,
    "why": pl.String, "quantity": pl.String, "unit": pl.String,
    "sides": pl.List(pl.Struct(_SIDE)), "needs": pl.List(pl.Struct(_NEED)),
}  # fmt: skip
COLUMNS = {
    **dict.fromkeys(("claim", "source", "place", "role", "experiment", "says", "rule"), pl.String),
    "statistics": pl.List(pl.String), "published": pl.Float64, "same": pl.Boolean,
} | {
    f"{when}_{name}" if name else when: kind for when in WHEN for name, kind in _VERDICT.items()
}  # fmt: skip


def frame(entries: Sequence[Entry]) -> pl.DataFrame:
    """Return a row for each entry, with COLUMNS: `then_…` and `now_…` hold a verdict's fields."""
    rows = []
    for entry in entries:
        row = {name: getattr(entry, name) for name in COLUMNS if name in entry.__dict__}
        for when, verdict in zip(WHEN, (entry.then, entry.now)):
            columns = _columns(verdict)
            row |= {f"{when}_{name}" if name else when: value for name, value in columns.items()}
        rows.append(row)
    return pl.DataFrame(rows, schema=COLUMNS)


def _columns(verdict: Verdict) -> dict:
    plain = {name: getattr(verdict, name) for name in _VERDICT if name in verdict.__dict__}
    return plain | {
        "": verdict.verdict,
        "effect": verdict.interval.estimate,
        "low": verdict.interval.low,
        "high": verdict.interval.high,
        "trials": verdict.interval.trials,
        "releases": [age.phrase for age in verdict.ages],
        "sides": [
            {"what": side.what, "raw": side.raw} | side.interval.row for side in verdict.sides
        ],
        "needs": list(map(asdict, verdict.needs)),
    }


def unmet_needs(entries: Sequence[Entry]) -> pl.DataFrame:
    """Return the conditions that claims did not reach: source, says, needed, there."""
    unmet = [
        {"source": entry.source, "says": entry.says, "needed": need.needed, "there": need.there}
        for entry in entries
        for verdict in entry.verdicts.values()
        if verdict.verdict == UNREACHED
        for need in verdict.needs
        if not need.met
    ]
    schema = dict.fromkeys(("source", "says", "needed", "there"), pl.String)
    return pl.DataFrame(unmet, schema=schema).unique(maintain_order=True)


FOLDER = "DEATHMATCH_LEDGERS"


def write(family: tuple[list[Entry], list[Result]], out: Path) -> None:
    """Write a ledger and the findings to a file, whole or not at all."""
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = out.with_name(f".{out.name}.part")
    aside.write_bytes(pickle.dumps(family))
    aside.replace(out)


def read(dataset: str) -> tuple[list[Entry], list[Result]] | None:
    """Return the dataset's ledger and findings from the folder FOLDER; None if not there."""
    folder = os.environ.get(FOLDER)
    file = Path(folder, f"{dataset}.pickle") if folder else None
    return pickle.loads(file.read_bytes()) if file and file.is_file() else None
