"""Rules about tables: each is what the raw logs give, and no counter in it is impossible."""

from collections.abc import Iterator

from deathmatch.checks.rule import Finding, Rules
from deathmatch.data import limits
from deathmatch.data.laws import LAWS
from deathmatch.data.laws.law import Law
from deathmatch.data.strict.evidence import Evidence
from deathmatch.data.strict.rule import DATA, LOAD

TABLE = Rules("delete the table and run snakemake: it is made again from the raw logs")
# The column in which the tables name the laws that a point breaks; older datasets lack it.
MARKS = "laws_broken"


@TABLE.add("DM-TABLES", "reject", DATA)
def tables_fit_their_schema(evidence: Evidence) -> Iterator[Finding]:
    """Each experiment has its tables, with the columns and types of their schema."""
    for (experiment, table), frame in evidence.tables.items():
        if isinstance(frame, str):
            yield Finding(frame, f"{evidence.named}/{experiment}/{table}.parquet")


@TABLE.add("DM-ROWS", "reject", DATA)
def rows_are_those_of_the_logs(evidence: Evidence) -> Iterator[Finding]:
    """A table has the rows that the raw logs give: none twice, none missing, none of another trial.

    Rows that were labelled otherwise are values that differ.
    """
    return (Finding(row.what, row.where) for row in evidence.differences if row.kind == "rows")


@TABLE.add("DM-VALUES", "reject", DATA)
def values_are_those_of_the_logs(evidence: Evidence) -> Iterator[Finding]:
    """Every value of every table is the one that the raw logs give, floats bit by bit.

    Another value was edited, or made by other code.
    """
    return (Finding(row.what, row.where) for row in evidence.differences if row.kind == "values")


@TABLE.add(
    "DM-COUNTERS", "reject", LOAD,
    "find out what counted wrongly, and measure these trials again",
)  # fmt: skip
def counters_are_possible(evidence: Evidence) -> Iterator[Finding]:
    """No counter is impossible: more replies than requests, more CPU time than there is.

    No sound measurement breaks these laws.
    """
    for where, rate_rps, law in _broken(evidence):
        if law.severity == "reject":
            yield Finding(f"{law.id} is broken at {rate_rps} req/s: {law.statement}", where)


@TABLE.add(
    "DM-LAW", "warn", LOAD,
    "look at these points: their mark keeps them out of figures and verdicts",
)  # fmt: skip
def laws_are_obeyed(evidence: Evidence) -> Iterator[Finding]:
    """Each point obeys the laws; one that does not is marked, and left out.

    DM-VALUES sees to it that each that must be is marked. A law of single columns is not reported:
    the rest of the point is sound.
    """
    for where, rate_rps, law in _broken(evidence):
        if law.severity == "warn":
            yield Finding(f"{law.id} is broken at {rate_rps} req/s", where)


@TABLE.add(
    "DM-USABLE", "warn", LOAD,
    "measure again while nothing else runs on the machine; figures show these points hollow, and "
    "no verdict uses them",
)  # fmt: skip
def most_points_show_their_server(evidence: Evidence) -> Iterator[Finding]:
    """At least half of an experiment's points show the server, not the client or the testbed."""
    for experiment, (unusable, points) in unusable_points(evidence).items():
        if unusable > points / 2:
            where = f"{evidence.named}/{experiment}/points.parquet"
            text = f"{unusable} of {points} points show the limit of client or testbed"
            yield Finding(text, where)


def unusable_points(evidence: Evidence) -> dict[str, tuple[int, int]]:
    """Return how many points of each experiment with load show client or testbed, and of all."""
    return {
        experiment: (frame.select(limits.by_harness(frame).sum()).item(), len(frame))
        for (experiment, table), frame in evidence.tables.items()
        if table == "points" and not isinstance(frame, str) and "client_limited" in frame.columns
    }


def _broken(evidence: Evidence) -> Iterator[tuple[str, int, Law]]:
    """Return the trial, the offered rate and the law of each mark."""
    for (experiment, table), frame in evidence.tables.items():
        if table != "points" or isinstance(frame, str) or MARKS not in frame.columns:
            continue
        for row in frame.explode(MARKS).drop_nulls(MARKS).iter_rows(named=True):
            where = f"{evidence.named}/{experiment}/{row['server']}/{row['variant']}/{row['n']}"
            if row[MARKS] in LAWS:
                yield where, row["offered_rate_rps"], LAWS[row[MARKS]]
