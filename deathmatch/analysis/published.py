"""The sources' own numbers and claims, of `data/published/`.

`load("walkin2009")` returns one source's numbers, `single_value(…)` one of them, `claims()` the
claims with their rules, `untested()` those without one, `effect()` the source's own ratio.
data/published/README.md explains the columns; `tests/test_published.py` checks what they hold.
"""

from functools import cache
from pathlib import Path
from typing import Literal, Self

import polars as pl
from pydantic import Field, model_validator

from deathmatch.analysis.comparison import Comparison
from deathmatch.errors import UserError
from deathmatch.plan import validation_errors
from deathmatch.plan.paths import ROOT
from deathmatch.plan.spec import Many, Spec

FOLDER = ROOT / "data" / "published"
CLAIMS, UNTESTED = FOLDER / "claims.toml", FOLDER / "untested.toml"
EXPLORATORY = FOLDER / "exploratory.csv"

FACTORS = {
    "williams2009": {"kernel_poll": pl.Boolean, "offered_rate_rps": pl.Int64},
    "walkin2009": {
        "configuration": pl.String,
        "processes": pl.Int64,
        "schedulers": pl.String,
        "backlog": pl.Int64,
        "offered_rate_rps": pl.Int64,
        "attempt": pl.Int64,
    },
    "day2011": {"threads": pl.Int64, "processes": pl.Int64, "requests_per_connection": pl.Int64},
    "ostinelli2011": {"backlog": pl.Int64},
    "moritz2012": {"position": pl.Int64},
}
"""Factor columns by source; the sources are in order of publication."""

_SHARED = {
    "source": pl.String, "place": pl.String, "system": pl.String, "quantity": pl.String,
    "unit": pl.String, "statistic": pl.String, "value": pl.Float64, "reading": pl.String,
    "printed": pl.String, "testbed": pl.String, "note": pl.String,
}  # fmt: skip


@cache
def load(source: str) -> pl.DataFrame:
    """Return what one source reported, one row for each number, in the file's order.

    Columns: source, place, system, the source's `FACTORS` (null where they do not apply),
    quantity, unit, statistic, value (in that unit), reading, printed (the source's words), testbed,
    note. Times are whole microseconds.
    """
    return pl.read_csv(FOLDER / f"{source}.csv", schema_overrides=_SHARED | FACTORS[source])


def single_value(frame: pl.DataFrame, **columns: object) -> float:
    """Return the value of the rows of `load` with these levels, as `place="post: Erlang table"`.

    Raises UserError if there is none, or several: a source may give two numbers of one system, from
    two runs.
    """
    values = frame.filter(**columns)["value"].unique().sort().to_list()
    if len(values) != 1:
        raise UserError(
            f"{columns} selects {len(values)} different values {values}",
            remedy="name the columns that pick one number of the source",
        )
    return values[0]


class Claim(Spec):
    """One statement of a source; the head of claims.toml explains the keys."""

    id: str = Field(pattern=r"^(walkin|williams|ostinelli|moritz|day)(-[a-z0-9]+)+$")
    source: Literal[*FACTORS]
    place: str = Field(pattern=r"^(post: .+|(comment|reply) [^/]+/.+)$")
    role: Literal["result", "explanation", "objection", "reply"]
    experiment: str
    claim: str = Field(min_length=10, max_length=160)
    quotation: str = ""
    basis: Literal["size", "stated", "words", "direction", "equivalence"]
    text: str = Field(min_length=20)
    published: dict[Literal["a", "b"], dict[str, str | int | bool]] = Field(default_factory=dict)
    # Asks for nothing; three frozen rules have it.
    cpus: Literal[0] = 0
    now: Many[Comparison] = Field(min_length=1)
    then: Many[Comparison] = ()
    condition: Many[Comparison] = ()
    condition_then: Many[Comparison] = ()

    @property
    def same(self) -> bool:
        """Whether then and now compare the same variants, so that they share a verdict."""
        return not self.then and not self.condition_then

    @property
    def every(self) -> tuple[Comparison, ...]:
        """The comparisons of now and of then."""
        return self.now + self.then

    def compared(self, when: str) -> tuple[Comparison, ...]:
        """Return the comparisons of "then" or "now", which must all hold."""
        return self.then if when == "then" and self.then else self.now

    def conditions(self, when: str) -> tuple[Comparison, ...]:
        """Return the conditions under which the data can decide the claim "then" or "now"."""
        return self.condition_then if when == "then" and self.condition_then else self.condition


class _Claims(Spec):
    claim: Many[Claim] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [claim.id for claim in self.claim]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"the id {twice!r} is there twice")
        return self


class Untested(Spec):
    """A statement of a source that no test here decides, with the reason."""

    id: str
    source: Literal[*FACTORS]
    place: str
    claim: str
    quotation: str = ""
    reason: str = Field(min_length=10)


class _UntestedFile(Spec):
    untested: Many[Untested]


def claims(path: Path | None = None) -> tuple[Claim, ...]:
    """Return the claims in the file's order; UserError with the key where the file is wrong."""
    path = path or CLAIMS
    return _of_file(_Claims, path, path.stat().st_mtime_ns).claim


def untested(path: Path = UNTESTED) -> tuple[Untested, ...]:
    """Return the statements that no test here decides, in the file's order."""
    return _of_file(_UntestedFile, path, path.stat().st_mtime_ns).untested


def deviations(dataset: str) -> list[dict]:
    """Return what was done otherwise than the dataset's plan said: day, what, why."""
    path = FOLDER / "deviations.toml"
    known = validation_errors.parse(path.read_bytes(), path.name)["deviation"]
    return [one for one in known if one["dataset"] == dataset]


@cache
def systems() -> pl.DataFrame:
    """Return which of our servers is the system of a post: server, schedulers, system."""
    return pl.read_csv(FOLDER / "systems.csv")


def exploratory() -> pl.DataFrame:
    """Return the verdicts that earlier datasets gave on the claims of today.

    Columns: claim, dataset, then, now (verdicts), then_effect, now_effect.
    """
    return pl.read_csv(EXPLORATORY).filter(pl.col("claim").is_in([one.id for one in claims()]))


@cache
def _of_file(model: type[Spec], path: Path, _mtime_ns: int):
    raw = validation_errors.parse(path.read_bytes(), path.name)
    return validation_errors.validated(model, raw, path.name)


def effect(claim: Claim) -> float | None:
    """Return the source's own a / b, or a alone, for a claim; None if it gave no numbers."""
    if not claim.published:
        return None
    frame = load(claim.source)
    values = {side: single_value(frame, **rows) for side, rows in claim.published.items()}
    return values["a"] / values.get("b", 1)
