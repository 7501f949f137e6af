"""The sources' own numbers and claims: `data/published/` as checked polars frames.

`load("walkin2009")` returns one source's numbers, `single_value(…)` one of them, `testbeds()` the
machines they were taken on, `quantities()` what each quantity means, `claims()` what is to be
decided and by which rule, `effect()` what the source itself found. data/published/README.md
explains the columns.
"""

import difflib
from functools import cache
from pathlib import Path

import pandera.errors
import pandera.polars as pa
import polars as pl

from deathmatch.errors import UserError
from deathmatch.plan import schemas, validation_errors
from deathmatch.plan.paths import ROOT
from deathmatch.quantities.definitions import QUANTITIES

FOLDER = ROOT / "data" / "published"
CLAIMS = FOLDER / "claims.toml"
DIFFERENCES = FOLDER / "differences.toml"

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


def claims(path: Path = CLAIMS) -> list[dict]:
    """Return the claims in the file's order, checked against config/schemas/claims.json.

    Raises UserError when the file breaks the schema, repeats an id, or names a statistic in a
    rule that neither `deathmatch.quantities` nor its own table of statistics defines.
    """
    return _claims(path, path.stat().st_mtime_ns)


@cache
def _claims(path: Path, mtime_ns: int) -> list[dict]:
    ledger = _toml(path)
    schemas.validate("claims", ledger, path.name)
    seen = set()
    for at, claim in enumerate(ledger["claim"]):
        unknown = sorted(statistics_of(claim["rule"]) - set(ledger["statistics"]) - set(QUANTITIES))
        for problem, key, what, remedy in (
            (claim["id"] in seen, "id", f"the id {claim['id']!r} is there twice", "rename one"),
            (unknown, "rule", f"undefined statistic {unknown}", "define it under [statistics]"),
        ):
            if problem:
                raise UserError(what, validation_errors.at(path.name, ["claim", at, key]), remedy)
        seen.add(claim["id"])
    return ledger["claim"]


def differences(path: Path = DIFFERENCES) -> list[dict]:
    """Return what differs between the sources' measurements and ours, as that file explains."""
    return _differences(path, path.stat().st_mtime_ns)


@cache
def _differences(path: Path, mtime_ns: int) -> list[dict]:
    known = _toml(path)
    schemas.validate("differences", known, path.name)
    return known["difference"]


@cache
def _parsed(path: Path, mtime_ns: int) -> dict:
    return _toml(path)


def _toml(path: Path) -> dict:
    return validation_errors.parse(path.read_bytes(), path.name)


def planned(path: Path = CLAIMS) -> dict[str, str]:
    """Return the columns that rules select by and no experiment has yet, with what they are."""
    return _parsed(path, path.stat().st_mtime_ns)["planned"]


def stand_ins(when: str, source: str, path: Path = CLAIMS) -> dict[str, dict | list[dict]]:
    """Return what stands for a source's servers "then" or "now", by server.

    It is columns that replace a selector's own, or a list of such in order of preference.
    """
    return _parsed(path, path.stat().st_mtime_ns)[when].get(source, {})


def together(path: Path = CLAIMS) -> list[set[str]]:
    """Return the sets of servers that are never compared on two releases of their runtime."""
    return [set(names) for names in _parsed(path, path.stat().st_mtime_ns)["together"].values()]


def releases_of(server: str, path: Path = CLAIMS) -> set[str]:
    """Return a server and those that claims.toml lets stand for the same one, of any source."""
    ledger = _parsed(path, path.stat().st_mtime_ns)
    tables = [*ledger["now"].values(), *ledger["then"].values()]
    for base, options in (pair for table in tables for pair in table.items()):
        names = {base, *(option.get("server", base) for option in as_list(options))}
        if server in names:
            return names | {server}
    return {server}


def as_list(options: dict | list[dict]) -> list[dict]:
    """Return what may stand in for a server, in order of preference."""
    return options if isinstance(options, list) else [options]


def minimum_trials(path: Path = CLAIMS) -> int:
    """Return with how many trials a claim can be decided at all, as claims.toml has it."""
    return _parsed(path, path.stat().st_mtime_ns)["minimum_trials"]


def free(rule: dict) -> frozenset[str]:
    """Return the columns over which a rule, or a part of it, ranges: it names no level of them."""
    parts = [rule, *rule.get("rules", [])]
    return frozenset(part[key] for part in parts for key in ("over", "each") if key in part)


def selectors(rule: dict) -> list[dict]:
    """Return the selectors of a rule and of the rules it holds, each complete.

    Where a rule compares levels of a column (`over`), each level gives one selector, with what
    `where` adds; without levels, `where` alone.
    """
    where = rule.get("where", {})
    levels = rule.get("levels", rule.get("ascending", []))
    levels = [*levels, rule["level"]] if "level" in rule and rule["level"] not in levels else levels
    named = [level if isinstance(level, dict) else {rule["over"]: level} for level in levels]
    own = [rule[side] for side in ("a", "b") if side in rule]
    own += [where | level for level in named] or ([where] if where else [])
    return own + [selector for part in rule.get("rules", []) for selector in selectors(part)]


def statistics_of(rule: dict) -> set[str]:
    """Return the names of the statistics a rule, and the rules it holds, are decided by."""
    named = [rule, *rule.get("rules", []), *selectors(rule)]
    return {part["statistic"] for part in named if "statistic" in part}


def effect(claim: dict, folder: Path = FOLDER) -> float | None:
    """Return the source's own a / b, or a alone, for a claim; None if it gave no numbers.

    Raises UserError when `published.a` or `.b` does not select exactly one row.
    """
    if "published" not in claim:
        return None
    frame = load(claim["source"], folder)
    values = {}
    for side, columns in claim["published"].items():
        rows = frame.filter(*(pl.col(name) == level for name, level in columns.items()))
        if len(rows) != 1:
            raise UserError(
                f"{columns} selects {len(rows)} rows of {claim['source']}.csv",
                f"claims.toml, claim {claim['id']}, key published.{side}",
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
