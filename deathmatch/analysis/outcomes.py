"""The outcome of each server of a dataset: its number in an experiment, or why it has none.

In: an experiment, as `labelled` returns it. Out: a row for each of its variants.
"""

from dataclasses import dataclass

import polars as pl

from deathmatch.analysis import phrases, selecting, stats
from deathmatch.analysis.stats import NO_TRIAL, Interval
from deathmatch.analysis.views import LABEL_FACTORS, Experiment, why_not_measured
from deathmatch.data import limits
from deathmatch.load import registry
from deathmatch.plan import files
from deathmatch.quantities import definitions
from deathmatch.quantities.quantity import Quantity

_VARIANT = ["server", "variant"]
_MAIN = {
    "reply_rate": definitions.REPLY_RATE_OVERLOAD,
    "closed_loop": definitions.REPLY_RATE_OVERLOAD,
    "latency": definitions.QUANTITIES["message_latency_p50_us"],
    None: definitions.BYTES_PER_MESSAGE,
}


@dataclass(frozen=True)
class Outcome:
    """The outcome of one variant of a server: the `value` of a quantity, or `why` it has none.

    `at_least`: in some trial the server answered all that it was offered, so it may do more.
    `by_harness`: some of its points show the limit of the load generator or the testbed.
    """

    experiment: str
    server: str
    variant: str
    label: str
    quantity: Quantity
    value: Interval
    at_least: bool
    why: str
    by_harness: bool

    @property
    def number(self) -> str:
        """The value with its unit, as "≥ 2 000 [1 990, 2 010] req/s"; "" without one."""
        if not self.value.trials:
            return ""
        digits = 0 if self.value.estimate >= 100 else 1
        least = "≥ " if self.at_least else ""
        return f"{least}{phrases.brackets(self.value, digits)} {self.quantity.unit}"


def labelled(dataset: str, experiment: str) -> Experiment:
    """Return an experiment whose labels name each factor in which variants differ."""
    factors = files.experiment(experiment).factors
    named = tuple(factor for factor in factors if factor not in LABEL_FACTORS)
    return Experiment(dataset, experiment, named)


def outcomes(held: Experiment) -> list[Outcome]:
    """Return the outcome of each variant: the best number first, those without a number last."""
    client = held.spec.client
    quantity = _MAIN[registry.generator(client).headline if client else None]
    points_of = held.points.partition_by(_VARIANT, as_dict=True)
    made = [
        _outcome(held, quantity, key, trials, points_of.get(key, held.points.clear()))
        for key, trials in held.trials.partition_by(_VARIANT, as_dict=True).items()
    ]
    sign = -1 if quantity.higher_is_better else 1
    return sorted(
        made,
        key=lambda outcome: (
            not outcome.value.trials, sign * (outcome.value.estimate or 0), outcome.label,
        ),
    )  # fmt: skip


def _outcome(
    held: Experiment, quantity: Quantity, key: tuple, trials: pl.DataFrame, points: pl.DataFrame
) -> Outcome:
    values = selecting.variant_of(points, quantity.points).values(quantity)
    value = stats.interval(values.all) if values.all else NO_TRIAL
    first = trials.sort("n").row(0, named=True)
    why = "" if value.trials else why_not_measured(first, points).replace("`", "")
    return Outcome(
        experiment=held.name, server=key[0], variant=key[1], label=first["label"],
        quantity=quantity, value=value, at_least=bool(values.at_least), why=why,
        by_harness="client_limited" in points.columns
        and bool(points.select(limits.by_harness(points).any()).item()),
    )  # fmt: skip
