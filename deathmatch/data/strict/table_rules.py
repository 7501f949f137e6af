"""Rules about tables: each is what the raw logs give, and no counter in it is impossible."""

from collections.abc import Iterator

from deathmatch.data.laws import LAWS
from deathmatch.data.laws.law import Law
from deathmatch.data.strict.evidence import Evidence
from deathmatch.data.strict.rule import DATA, LOAD, Seen, Unknown, rule

AGAIN = "delete the table and run snakemake: it is made again from the raw logs"
# The column in which the tables name the laws that a point breaks; a dataset of before has none.
MARKS = "laws_broken"


@rule(
    "DM-TABLES", DATA, "reject",
    "Each experiment has its tables, with the columns and types of their schema.", AGAIN,
)  # fmt: skip
def tables_fit_their_schema(evidence: Evidence) -> Iterator[Seen]:
    """Look for tables that are absent or damaged."""
    for (experiment, table), frame in evidence.tables.items():
        if isinstance(frame, str):
            yield Seen(f"{evidence.named}/{experiment}/{table}.parquet", frame)


@rule(
    "DM-ROWS", DATA, "reject",
    "A table has the rows that the raw logs give: none twice, none missing, none of another trial.",
    AGAIN,
)  # fmt: skip
def rows_are_those_of_the_logs(evidence: Evidence) -> Iterator[Seen | Unknown]:
    """Look for rows that are doubled, lost or labelled otherwise."""
    for one in evidence.differences:
        if one.kind == "rows":
            yield Seen(one.where, one.what)


@rule(
    "DM-VALUES", DATA, "reject",
    "Every value of every table is the one that the raw logs give, floats bit by bit.", AGAIN,
)  # fmt: skip
def values_are_those_of_the_logs(evidence: Evidence) -> Iterator[Seen]:
    """Look for values that were edited, or made by other code."""
    for one in evidence.differences:
        if one.kind == "values":
            yield Seen(one.where, one.what)


@rule(
    "DM-COUNTERS", LOAD, "reject",
    "No counter is impossible: more replies than requests, more CPU time than there is.",
    "find out what counted wrongly, and measure these trials again",
)  # fmt: skip
def counters_are_possible(evidence: Evidence) -> Iterator[Seen]:
    """Look for marks of laws that no sound measurement breaks."""
    for where, rate_rps, law in _broken(evidence):
        if law.holds_of_all:
            yield Seen(where, f"{law.id} is broken at {rate_rps} req/s: {law.statement}")


@rule(
    "DM-LAW", LOAD, "warn",
    "Each point obeys the laws; one that does not is marked, and left out.",
    "look at these points: their mark keeps them out of figures and verdicts",
)  # fmt: skip
def laws_are_obeyed(evidence: Evidence) -> Iterator[Seen]:
    """Tell which points are left out; DM-VALUES sees to it that each that must be is marked.

    What a law says of single columns is not told: the rest of the point is sound.
    """
    for where, rate_rps, law in _broken(evidence):
        if law.leaves_out and law.of_the_run:
            yield Seen(where, f"{law.id} is broken at {rate_rps} req/s")


def _broken(evidence: Evidence) -> Iterator[tuple[str, int, Law]]:
    """Return for each mark the trial, the offered rate and the law."""
    for (experiment, table), frame in evidence.tables.items():
        if table != "points" or isinstance(frame, str) or MARKS not in frame.columns:
            continue
        for row in frame.explode(MARKS).drop_nulls(MARKS).iter_rows(named=True):
            where = f"{evidence.named}/{experiment}/{row['server']}/{row['variant']}/{row['n']}"
            if row[MARKS] in LAWS:
                yield where, row["offered_rate_rps"], LAWS[row[MARKS]]


RULES = (
    tables_fit_their_schema, rows_are_those_of_the_logs, values_are_those_of_the_logs,
    counters_are_possible, laws_are_obeyed,
)  # fmt: skip
