"""The sources' own numbers and claims: `data/published/` as checked polars frames.

`load("walkin2009")` returns one source's numbers, `single_value(…)` one of them, `testbeds()` the
machines they were taken on, `quantities()` what each quantity means, `claims()` what is compared to
decide what, `untested()` what is not, `effect()` what the source itself found.
data/published/README.md explains the columns.
"""

import difflib
from functools import cache
from pathlib import Path
from typing import Literal, Self

import pandera.errors
import pandera.polars as pa
import polars as pl
from pydantic import Field, model_validator

from deathmatch.analysis.comparison import Comparison
from deathmatch.errors import UserError
from deathmatch.plan import files, validation_errors
from deathmatch.plan.paths import ROOT
from deathmatch.plan.spec import Many, Spec

FOLDER = ROOT / "data" / "published"
CLAIMS, UNTESTED = FOLDER / "claims.toml", FOLDER / "untested.toml"
DECIDED = FOLDER / "decided.toml"
NEXT = FOLDER / "next.toml"

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

READINGS = ["exact", "about", "at least", "at most", "order"]
STATISTICS = [
    "count", "maximum", "mean", "median", "minimum", "order", "p95", "p99", "p99.9",
    "plateau", "ratio", "setting", "single run", "stddev", "step", "unstated",
]  # fmt: skip

_SHARED = {
    "source": pl.String, "place": pl.String, "system": pl.String, "quantity": pl.String,
    "unit": pl.String, "statistic": pl.String, "value": pl.Float64, "reading": pl.String,
    "printed": pl.String, "testbed": pl.String, "note": pl.String,
}  # fmt: skip
_TESTBEDS = {
    "testbed": pl.String, "source": pl.String, "server_cpu": pl.String,
    "server_memory": pl.String, "server_os": pl.String, "versions": pl.String,
    "client": pl.String, "client_machine": pl.String, "network": pl.String, "note": pl.String,
}  # fmt: skip


def load(source: str, folder: Path = FOLDER) -> pl.DataFrame:
    """Return what one source reported, one row for each number, in the file's order.

    Columns: source, place, system, the source's `FACTORS` (null where they do not apply),
    quantity, unit, statistic, value (in that unit), reading (one of `READINGS`), printed (the
    source's words), testbed, note. Times are whole microseconds. Raises UserError for an
    unknown source and for a file that breaks the schema.
    """
    if source not in FACTORS:
        near = difflib.get_close_matches(source, FACTORS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UserError(
            f"there is no source {source!r}", remedy=f"{hint}known: {', '.join(FACTORS)}"
        )
    return _loaded(source, folder, tuple(file.stat().st_mtime_ns for file in folder.glob("*.csv")))


@cache
def _loaded(source: str, folder: Path, mtimes_ns: tuple[int, ...]) -> pl.DataFrame:
    path = folder / f"{source}.csv"
    types = _SHARED | FACTORS[source]
    units = quantities(folder)
    beds = testbeds(folder).filter(pl.col("source").is_in([source, "any"]))["testbed"].to_list()
    unit_of = dict(units.select("quantity", "unit").iter_rows())
    schema = _schema(
        types,
        {
            "source": pa.Check.equal_to(source),
            "quantity": pa.Check.isin(list(unit_of)),
            "statistic": pa.Check.isin(STATISTICS),
            "reading": pa.Check.isin(READINGS),
            "testbed": pa.Check.isin(beds),
        },
        optional=["note", *FACTORS[source]],
        # Only the same number, given twice at the same place, is a slip of transcription.
        unique=[name for name in types if name not in ("value", "note")],
        rows=[
            _row(
                pl.col("unit") == pl.col("quantity").replace_strict(unit_of, default=None),
                "the unit is not the quantity's in quantities.csv",
            ),
            _row(
                (pl.col("unit") != "us") | (pl.col("value") == pl.col("value").round()),
                "a time is not a whole number of microseconds",
            ),
            _row(pl.col("value").is_finite(), "the value is not finite"),
        ],
    )
    return _read(path, types, schema)


def single_value(frame: pl.DataFrame, **columns: object) -> float:
    """Return the value of the rows of `load` with these levels, as `place="post: Erlang table"`.

    Raises UserError if they hold none, or several: a source may give the same system two numbers,
    of two runs, and prose must say which it means.
    """
    values = frame.filter(**columns)["value"].unique().sort().to_list()
    if len(values) != 1:
        raise UserError(
            f"{columns} selects {len(values)} different values {values}",
            remedy="name the columns that pick one number of the source",
        )
    return values[0]


def testbeds(folder: Path = FOLDER) -> pl.DataFrame:
    """Return the testbeds as the sources state them; "not stated" where they do not.

    All columns are text: testbed (the key), source ("any" for none in particular), server_cpu,
    server_memory, server_os, versions, client, client_machine, network, note.
    """
    schema = _schema(
        _TESTBEDS,
        {"source": pa.Check.isin([*FACTORS, "any"])},
        optional=["note"],
        unique=["testbed"],
    )
    return _read(folder / "testbeds.csv", _TESTBEDS, schema)


def quantities(folder: Path = FOLDER) -> pl.DataFrame:
    """Return the dictionary of quantities: quantity (the key), unit, meaning."""
    types = {"quantity": pl.String, "unit": pl.String, "meaning": pl.String}
    schema = _schema(types, {"unit": pa.Check.isin(["1", "1/s", "us", "B"])}, unique=["quantity"])
    return _read(folder / "quantities.csv", types, schema)


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
    cpus: int = Field(0, ge=0)
    now: Many[Comparison] = Field(min_length=1)
    then: Many[Comparison] = ()
    condition: Many[Comparison] = ()
    condition_then: Many[Comparison] = ()

    @property
    def same(self) -> bool:
        """Whether one variant stands for then and now, so that both verdicts are one."""
        return not self.then and not self.condition_then

    @property
    def every(self) -> tuple[Comparison, ...]:
        """The comparisons of now and of then."""
        return self.now + self.then

    def compared(self, when: str) -> tuple[Comparison, ...]:
        """Return what is compared "then" or "now"; all of it must hold."""
        return self.then if when == "then" and self.then else self.now

    def conditions(self, when: str) -> tuple[Comparison, ...]:
        """Return what must hold for the data to speak to the claim "then" or "now"."""
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


class _Decided(Spec):
    dataset: str
    changed: Many[str]
    by: dict[str, str]


def claims(path: Path = CLAIMS) -> tuple[Claim, ...]:
    """Return the claims in the file's order; UserError with the key where the file is wrong."""
    return _of_file(_Claims, path, path.stat().st_mtime_ns).claim


def untested(path: Path = UNTESTED) -> tuple[Untested, ...]:
    """Return the statements that no test here decides, in the file's order."""
    return _of_file(_UntestedFile, path, path.stat().st_mtime_ns).untested


def has_frozen_rules(dataset: str) -> bool:
    """Return whether a dataset's file says `frozen_rules`; False without such a file."""
    return dataset in files.names("dataset") and files.dataset(dataset).frozen_rules


def later(kind: Literal["claim", "finding"], rows: list[dict]) -> list[dict]:
    """Return the rows of a file as a dataset with frozen rules has them: what NEXT replaces.

    Without those of which it says that they are not tested.
    """
    known, key = _toml(NEXT), {"claim": "id", "finding": "name"}[kind]
    own = {row[key]: row for row in known[kind]}
    if unknown := sorted(own.keys() - {row[key] for row in rows}):
        where = validation_errors.at(NEXT.name, [kind])
        raise UserError(f"there is no {kind} {unknown[0]!r}", where, "name one that there is")
    left_out = {one["id"] for one in known["untested"]}
    return [row | own.get(row[key], {}) for row in rows if row[key] not in left_out]


def claims_of(dataset: str) -> tuple[Claim, ...]:
    """Return the claims as a dataset decides them (`later`)."""
    if not has_frozen_rules(dataset):
        return claims()
    rows = later("claim", _toml(CLAIMS)["claim"])
    return validation_errors.validated(_Claims, {"claim": rows}, NEXT.name).claim


def deciders(dataset: str, path: Path = DECIDED) -> dict[str, str]:
    """Return the claims and findings that a dataset leaves to another one, each with that."""
    known = _of_file(_Decided, path, path.stat().st_mtime_ns)
    return known.by if known.dataset == dataset else {}


def changed_rules(path: Path = DECIDED) -> tuple[str, ...]:
    """Return the claims whose rule was changed, or written, after trials that decide them."""
    return _of_file(_Decided, path, path.stat().st_mtime_ns).changed


@cache
def _of_file(model: type[Spec], path: Path, _mtime_ns: int):
    return validation_errors.validated(model, _toml(path), path.name)


def _toml(path: Path) -> dict:
    return validation_errors.parse(path.read_bytes(), path.name)


def effect(claim: Claim, folder: Path = FOLDER) -> float | None:
    """Return the source's own a / b, or a alone, for a claim; None if it gave no numbers.

    Raises UserError when `published.a` or `.b` does not select exactly one row.
    """
    if not claim.published:
        return None
    frame = load(claim.source, folder)
    values = {}
    for side, columns in claim.published.items():
        rows = frame.filter(*(pl.col(name) == level for name, level in columns.items()))
        if len(rows) != 1:
            raise UserError(
                f"{columns} selects {len(rows)} rows of {claim.source}.csv",
                f"claims.toml, claim {claim.id}, key published.{side}",
                "name the columns that pick exactly one",
            )
        values[side] = rows["value"][0]
    return values["a"] / values.get("b", 1)


def _schema(types: dict, checks: dict, unique: list[str], optional=(), rows=()):
    columns = {
        name: pa.Column(kind, checks.get(name), nullable=name in optional)
        for name, kind in types.items()
    }
    return pa.DataFrameSchema(columns, checks=list(rows), strict=True, unique=unique)


def _row(holds: pl.Expr, error: str) -> pa.Check:
    return pa.Check(lambda data: data.lazyframe.select(holds), error=error)


def _read(path: Path, types: dict, schema: pa.DataFrameSchema) -> pl.DataFrame:
    try:
        # Polars would guess types from the first rows, and read others by them.
        header = pl.read_csv(path, n_rows=0, infer_schema=False).columns
        if sorted(header) != sorted(types):
            wrong = ", ".join(sorted(set(header) ^ set(types)))
            raise UserError(
                f"the columns are not those expected; missing or unknown: {wrong}",
                f"{path.name}, line 1",
                f"the columns are {', '.join(types)}",
            )
        frame = pl.read_csv(path, schema_overrides=types)
        return schema.validate(frame, lazy=True)
    except FileNotFoundError:
        raise UserError(
            "the file is missing", str(path), "it is part of the repository: check it out again"
        ) from None
    except pl.exceptions.PolarsError as error:
        what = str(error).splitlines()[0]
        raise UserError(what, path.name, "correct that cell") from None
    except pandera.errors.SchemaErrors as error:
        first = error.failure_cases.sort("index").row(0, named=True)
        column = f", column {first['column']}" if first["column"] else ""
        # Line 1 is the header, and rows count from 0.
        line = f", line {first['index'] + 2}" if first["index"] is not None else ""
        raise UserError(
            f"{first['failure_case']}: {first['check']}",
            f"{path.name}{line}{column}",
            "correct the file, or the schema in deathmatch/analysis/published.py",
        ) from None
