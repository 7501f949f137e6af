"""A law: a statement with a bound, and a function that judges a dataset's tables by it.

In: the tables of one experiment. Out: a row for each point that the law applies to, with the value
seen and its bounds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from deathmatch.plan.experiment import Experiment
from deathmatch.quantities.quantity import RATE

TRIAL = ["server", "variant", "n"]
KEY = [*TRIAL, RATE]
# `seen` must lie between the two bounds, inclusive; a bound that is null does not apply.
JUDGED = {"seen": pl.Float64, "at_least": pl.Float64, "at_most": pl.Float64}
# A separate machine's counters include other programs: ssh, at least.
ALONE = pl.col("machines").is_null()
# The relative rounding error of a sum of floats.
_DIGITS = 1e-9


@dataclass(frozen=True)
class Evidence:
    """The tables of one experiment, and its specification."""

    spec: Experiment
    trials: pl.DataFrame
    points: pl.DataFrame
    times: pl.DataFrame | pl.LazyFrame
    samples: pl.DataFrame
    seconds: pl.DataFrame

    @property
    def client(self) -> str | None:
        """The load generator's name."""
        return self.spec.client

    @cached_property
    def load(self) -> Mapping[str, Any]:
        """The experiment's table `load`; empty without one."""
        return self.spec.load_as_written

    @cached_property
    def reported(self) -> pl.DataFrame:
        """The points with a whole report of the load generator, and their trial's machine."""
        own = ["cpus", "server_cpus", "client_cpus", "clients", "machines", "load_generator"]
        points = self.points.filter(pl.col("report") == "whole")
        return points.join(self.trials.select(*TRIAL, *own), on=TRIAL)

    @cached_property
    def during(self) -> pl.DataFrame:
        """The samples taken while a rate was offered, in their order."""
        return self.samples.drop_nulls(RATE)

    @cached_property
    def _counted(self) -> pl.DataFrame:
        """The columns that `with_counted` adds, for each quantity, as several laws need them."""
        grouped = self.times.lazy().group_by(*KEY, "quantity", maintain_order=True)
        return grouped.agg(
            counted=pl.col("count").sum(),
            total_us=(pl.col("time_us") * pl.col("count")).sum(),
            longest_us=pl.col("time_us").max(),
        ).collect()

    def with_counted(self, quantity: str) -> pl.DataFrame:
        """Return `reported` with `counted`, `total_us` and `longest_us` of a quantity's histogram.

        They are 0 for a point without a bin.
        """
        of_it = self._counted.filter(quantity=quantity).drop("quantity")
        joined = self.reported.join(of_it, on=KEY, how="left", maintain_order="left")
        return joined.with_columns(pl.col("counted", "total_us", "longest_us").fill_null(0))


Judge = Callable[[Evidence], pl.DataFrame]
"""Returns KEY and JUDGED: one row or more for each point that it can judge, and no other."""


@dataclass(frozen=True)
class Law:
    """A law: its identifier, statement, source, and bound, with the reason for its slack.

    Severities: "reject", no sound measurement breaks it; "warn", a sound measurement may break it
    if its run has no valid number. A point that breaks a law is left out of figures and verdicts;
    if the law has `columns`, only columns and histograms whose names begin with one of them are.
    """

    id: str
    severity: str
    statement: str
    source: str
    bound: str
    columns: tuple[str, ...]
    judge: Judge = field(repr=False)

    def judgements(self, evidence: Evidence) -> pl.DataFrame:
        """Return KEY, `law`, JUDGED and `broken` of each judgement."""
        made = self.judge(evidence).select(*KEY, pl.lit(self.id).alias("law"), *JUDGED)
        return made.with_columns(broken=broken())


def law(
    id: str, severity: str, source: str, *, bound: str, columns: tuple[str, ...] = ()
) -> Callable[[Judge], Law]:  # fmt: skip
    """Return a decorator that makes a law; its statement is the docstring's first paragraph."""

    def made(judge: Judge) -> Law:
        statement = " ".join((judge.__doc__ or "").partition("\n\n")[0].split())
        return Law(id, severity, statement, source, bound, columns, judge)

    return made


def judged(
    frame: pl.DataFrame,
    seen: pl.Expr,
    at_least: pl.Expr | float | None,
    at_most: pl.Expr | float | None,
) -> pl.DataFrame:
    """Return KEY and JUDGED of the rows with a known `seen` and bound."""
    chosen = frame.select(
        *KEY, seen=_number(seen), at_least=_number(at_least), at_most=_number(at_most)
    )
    bounded = pl.col("at_least").is_not_null() | pl.col("at_most").is_not_null()
    return chosen.filter(pl.col("seen").is_not_null() & bounded)


def broken() -> pl.Expr:
    """Return whether the value seen is beyond a bound."""
    slack = _DIGITS * pl.col("seen").abs()
    below = pl.col("seen") < pl.col("at_least") - slack
    above = pl.col("seen") > pl.col("at_most") + slack
    return below.fill_null(False) | above.fill_null(False)


def nothing(evidence: Evidence) -> pl.DataFrame:
    """Return no judgement."""
    keys = {name: evidence.points.schema.get(name, pl.Int64) for name in KEY}
    return pl.DataFrame(schema=keys | JUDGED)


def _number(value: pl.Expr | float | None) -> pl.Expr:
    return (value if isinstance(value, pl.Expr) else pl.lit(value)).cast(pl.Float64)
