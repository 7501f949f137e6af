"""The part of a dataset that a comparison's selector chooses, and its statistic in each trial.

A selector names a server and levels of factors; factors without a level are at their defaults.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from statistics import median

import polars as pl

from deathmatch.analysis import by_trial, judging, phrases, searched, views
from deathmatch.analysis.by_trial import Values, at_shared_rates, counted
from deathmatch.analysis.comparison import Comparison
from deathmatch.analysis.searched import SHARE
from deathmatch.capacity_search import search
from deathmatch.data import limits, tables
from deathmatch.errors import UserError
from deathmatch.plan import files
from deathmatch.quantities.definitions import (
    CAPACITY,
    CPU_PER_REPLY,
    HARDEST,
    IN_FULL,
    OVERLOAD,
    QUANTITIES,
    hardest,
)
from deathmatch.quantities.quantity import (
    RATE,
    Points,
    Quantity,
    of_experiment,
)

# The offered rate nearest to a share of a variant's capacity may be this factor from it.
NEAR_SHARE = 1.2
# The quantities that the rates of a search have; others are not recorded.
OF_SEARCH = {
    "error_ratio",
    "timeout_share",
    "reply_rate_rps",
    OVERLOAD,
    CPU_PER_REPLY.name,
}
# Keys of a selector that are not columns.
OWN = ("statistic", "experiment", "relative_to", RATE, SHARE)
Named = frozenset[tuple[str, str | int]]
"""The columns that a selector names, with their levels."""


def values(dataset: str, experiment: str, selector: dict) -> Values:
    """Return a selector's own statistic for each block; empty without a measurement."""
    return compared_values(dataset, experiment, Comparison(a=selector))[0]


def compared_values(dataset: str, experiment: str, compared: Comparison) -> list[Values]:
    """Return the statistic of each side of a comparison for each block.

    It is taken at the rates that both sides have, if they have the same statistic, which depends on
    the rates, and neither names a rate. OVERLOAD is taken at the highest of these rates, which each
    quotient has for itself.
    """
    sides = [divided_selectors(selector) for selector in compared.sides]
    if compared.statistic == OVERLOAD and any(len(side) > 1 for side in sides):
        pairs = (
            compared_values(
                dataset, experiment, compared.model_copy(update=dict(zip("ab", (*side, None))))
            )
            for side in sides
        )
        return [pair[0].over(pair[1]) if len(pair) > 1 else pair[0] for pair in pairs]
    chosen = compared_variants(dataset, experiment, compared)
    values = iter([Values() if pair is None else pair[0].values(pair[1]) for pair in chosen])
    return [next(values) if len(side) == 1 else next(values).over(next(values)) for side in sides]


def compared_variants(
    dataset: str, experiment: str, compared: Comparison
) -> list[tuple["Variant", Quantity] | None]:
    """Return the compared variants, and those they are relative to, with points at compared rates.

    None stands for a variant that was not measured.
    """
    plain = [each for selector in compared.sides for each in divided_selectors(selector)]
    chosen = [_quantity_of(dataset, experiment, compared, selector) for selector in plain]
    known = [pair for pair in chosen if pair is not None]
    variants = [variant for variant, _ in known]
    if compared.rate:
        shared = _at_one_rate(variants, min if compared.rate == "lowest" else max)
    elif len(known) > 1 and _pooled_alike(known):
        if known[0][1].name == OVERLOAD:
            shared = at_highest_rate(variants)
        else:
            shared = _at_shared_rates(variants, compared.paired)
    else:
        return chosen
    shared = iter(shared)
    return [pair and (next(shared), pair[1]) for pair in chosen]


def divided_selectors(selector: dict) -> list[dict]:
    """Return the selector, followed by its divisor if it is `relative_to` another one."""
    plain = {key: level for key, level in selector.items() if key != "relative_to"}
    return [plain, plain | selector["relative_to"]] if "relative_to" in selector else [plain]


@dataclass(frozen=True)
class Variant:
    """The points of one variant that count, at one rate or at all.

    `rates`: those that its testbed can offer, None without rates; `at_rate`: whether one rate was
    chosen; `left_out`: whether some points do not count; `short`: all points are shorter than
    needed.
    """

    points: pl.DataFrame
    rates: frozenset[int] | None
    at_rate: bool
    left_out: bool
    short: bool = False

    @property
    def top(self) -> int | None:
        """The most demanding rate (`hardest`); None without rates."""
        return hardest(self.rates) if self.rates else None

    def values(self, quantity: Quantity) -> Values:
        """Return the quantity for each block."""
        more = {"full": IN_FULL} if quantity.name == OVERLOAD else {}
        more |= {"top": HARDEST} if quantity.whole_sweep and not self.at_rate else {}
        trials = self.points.group_by("n", maintain_order=True).agg(
            quantity.number(self.points), **more
        )
        known = trials.drop_nulls(quantity.name)
        if "top" in more:
            # A sweep that the client cut short has no result.
            known = known.filter(pl.col("top").eq_missing(self.top))
        parts = self.points.partition_by("n", maintain_order=True) if quantity.step else ()
        return Values(
            dict(known.select("n", quantity.name).iter_rows()),
            at_least=frozenset(trials.filter("full")["n"]) if "full" in trials else frozenset(),
            kind=quantity.kind,
            step=max((quantity.step(part) for part in parts), default=0),
            hidden=known.is_empty() and self.left_out,
            short=self.short,
        )

    def lasting(self, least_s: int) -> "Variant":
        """Return the points of at least so many seconds, and their rates."""
        if "duration_us" not in self.points.columns:
            return self
        points = self.points.filter(pl.col("duration_us") >= 1_000_000 * least_s)
        rates = self.rates and self.rates.intersection(points[RATE])
        short = points.is_empty() and not self.points.is_empty()
        return replace(self, points=points, rates=rates, short=short)


def variant_of(frame: pl.DataFrame, which: Points, rate_rps: int | None = None) -> Variant:
    """Return the points of one variant that count, at one rate or at all."""
    rates = _rates(frame)
    if rate_rps is not None:
        frame = frame.filter(pl.col(RATE) == rate_rps)
    valid = counted(frame, which)
    return Variant(valid, rates, rate_rps is not None, len(valid) < len(frame))


def _rates(frame: pl.DataFrame) -> frozenset[int] | None:
    """Return the rates of a variant that its testbed can offer, or all of them; None without."""
    if RATE not in frame.columns:
        return None
    within = frame.filter(~limits.beyond_testbed(frame))
    return frozenset((within if len(within) else frame)[RATE])


def at_highest_rate(variants: list[Variant]) -> list[Variant]:
    """Return variants at the highest rate that all were offered: 0 if all have the closed loop.

    A variant without a point that counts at that rate has a hidden limit.
    """
    shared = frozenset.intersection(*(variant.rates for variant in variants))
    top = {hardest(shared)} if shared else set()
    return [
        replace(
            variant, points=variant.points.filter(pl.col(RATE).is_in(top)), rates=frozenset(top),
            left_out=bool(top),
        )
        for variant in variants
    ]  # fmt: skip


def _at_shared_rates(variants: list[Variant], paired: bool) -> list[Variant]:
    frames = at_shared_rates([variant.points for variant in variants], paired)
    return [replace(variant, points=frame) for variant, frame in zip(variants, frames)]


def _at_one_rate(variants: list[Variant], choose: Callable) -> list[Variant]:
    """Return variants at the lowest or highest rate at which enough trials of all count.

    Without such a rate, at the lowest or highest of all.
    """
    if any(variant.rates is None for variant in variants):
        return variants
    trials = [
        dict(variant.points.unique(["n", RATE])[RATE].value_counts().iter_rows())
        for variant in variants
    ]
    offered = set.intersection(*map(set, trials)) - {0} if trials else set()
    enough = {
        rate for rate in offered if min(known[rate] for known in trials) >= judging.MINIMUM_TRIALS
    }
    chosen = {choose(enough or offered)} if offered else set()
    return [
        replace(variant, points=variant.points.filter(pl.col(RATE).is_in(chosen)), at_rate=True)
        for variant in variants
    ]


def _quantity_of(
    dataset: str, experiment: str, compared: Comparison, selector: dict
) -> tuple[Variant, Quantity] | None:
    """Return the variant that a selector names and its quantity; None if it was not measured."""
    quantity = QUANTITIES[selector.get("statistic", compared.statistic)]
    experiment = selector.get("experiment", experiment)
    rate_rps = selector.get(RATE)
    named = _named(selector)
    if SHARE in selector:
        probed = quantity.name in OF_SEARCH
        variant = at_share(dataset, experiment, named, selector[SHARE], quantity.points, probed)
    else:
        variant = _variant(dataset, experiment, named, quantity.points, rate_rps)
    if variant and compared.least_s:
        variant = variant.lasting(compared.least_s)
    if variant and quantity.of_histogram:
        timed = by_trial.joined(dataset, experiment, variant.points, quantity.of_histogram)
        variant = replace(variant, points=timed)
    return variant and (variant, quantity)


def at_share(
    dataset: str, experiment: str, named: Named, share: float, which: Points, probed: bool
) -> Variant | None:
    """Return the points at a share of a variant's capacity; None without any.

    With `probed` they are the search's own, if it offered that share; else those of the sweep, at
    `rate_at_share`.
    """
    of_search = _selected(probes, dataset, experiment, named) if probed else None
    if of_search is not None and len(offered := searched.offered_at(of_search, share)):
        return Variant(offered, None, at_rate=True, left_out=False)
    rate_rps = rate_at_share(dataset, experiment, named, share)
    return rate_rps and _variant(dataset, experiment, named, which, rate_rps)


def rate_at_share(dataset: str, experiment: str, named: Named, share: float) -> int | None:
    """Return the offered rate nearest to a share of the median capacity that searches found.

    None without a capacity, or if no rate is within NEAR_SHARE of that.
    """
    swept = _variant(dataset, experiment, named, Points.VALID, None)
    ends = _variant(dataset, experiment, named, Points.SEARCHES, None)
    if swept is None or ends is None or not (found := ends.values(CAPACITY)):
        return None
    wanted_rps = share * median(found.all)
    of_it = {rate: rate / wanted_rps for rate in swept.points[RATE].unique().sort() if rate}
    near = [rate for rate, ratio in of_it.items() if 1 / NEAR_SHARE <= ratio <= NEAR_SHARE]
    return min(near, key=lambda rate: abs(math.log(of_it[rate])), default=None)


@cache
def _variant(
    dataset: str, experiment: str, named: Named, which: Points, rate_rps: int | None
) -> Variant | None:
    table = {Points.TRIALS: trials, Points.SEARCHES: searches}.get(which, points)
    frame = _selected(table, dataset, experiment, named)
    return None if frame is None else variant_of(frame, which, rate_rps)


def _pooled_alike(known: list[tuple[Variant, Quantity]]) -> bool:
    """Return whether the variants have one quantity that depends on which rates were offered."""
    quantity = known[0][1]
    return quantity.over_rates and all(
        other == quantity and variant.rates is not None and not variant.at_rate
        for variant, other in known
    )


@cache
def points(dataset: str, experiment: str) -> pl.DataFrame | None:
    """Return the points of an experiment, with `of_experiment`; None if the dataset has none."""
    frame = _table(dataset, experiment, "points")
    return None if frame is None else of_experiment(frame, experiment)


@cache
def trials(dataset: str, experiment: str) -> pl.DataFrame | None:
    """Return the trials of an experiment; None if the dataset has none."""
    return _table(dataset, experiment, "trials")


@cache
def probes(dataset: str, experiment: str) -> pl.DataFrame | None:
    """Return the probes of an experiment's searches; None if the dataset has none."""
    return _table(dataset, experiment, "probes", any_client=True)


@cache
def searches(dataset: str, experiment: str) -> pl.DataFrame | None:
    """Return the ends of an experiment's searches but for refused ones; None without a search."""
    frame = probes(dataset, experiment)
    if frame is None:
        return None
    return searched.ends(frame).filter(pl.col("outcome") != search.REFUSED)


def _clear_tables() -> None:
    for cached in (points, trials, probes, searches, _selected, _at_defaults, _variant):
        cached.cache_clear()


def _table(
    dataset: str, experiment: str, table: str, *, any_client: bool = False
) -> pl.DataFrame | None:
    if not files.exists("experiment", experiment):
        return None
    try:
        given = tables.read(dataset, experiment, table)
    except UserError:
        return None
    return tables.of_any_client(given) if any_client else tables.of_main_client(given)(given)


def selected(
    dataset: str, experiment: str, selector: dict, table: Callable = points
) -> pl.DataFrame | None:
    """Return the points of one variant: unnamed factors at their defaults; None if it has none."""
    experiment = selector.get("experiment", experiment)
    return _selected(table, dataset, experiment, _named(selector))


def _named(selector: dict) -> Named:
    return frozenset((key, level) for key, level in selector.items() if key not in OWN)


@cache
def _selected(table: Callable, dataset: str, experiment: str, named: Named) -> pl.DataFrame | None:
    levels = dict(named)
    frame = table(dataset, experiment)
    if frame is None or not levels.keys() <= set(frame.columns):
        return None
    frame = _at_defaults(table, dataset, experiment, frozenset(levels))
    return chosen if len(chosen := frame.filter(**levels)) else None


@cache
def _at_defaults(
    table: Callable, dataset: str, experiment: str, but: frozenset[str]
) -> pl.DataFrame:
    """Return the rows of a table with each factor `but` these at its default."""
    frame = table(dataset, experiment)
    return views.default_variants(frame, experiment, but)


def selector_phrase(selector: dict) -> str:
    """Return a selector in words: the server's title, then what else is chosen."""
    server = selector.get("server")
    known = server is not None and files.exists("server", server)
    title = files.server(server).title if known else server
    base = selector.get("relative_to", {})
    own = ("server", "statistic", "experiment", "relative_to")
    chosen = []
    for name, level in selector.items():
        word = _level_phrase(name, level)
        to = f" to {_level_phrase(name, base[name])}" if name in base else ""
        # A title such as "Yaws, poll" already names the level.
        if name not in own and not (known and title.endswith(f", {word}")):
            chosen.append(word + to)
    phrase = ", ".join(filter(None, [title, *chosen]))
    other = base.get("server")
    return f"{phrase} relative to {files.server(other).title}" if other else phrase


def _level_phrase(name: str, level) -> str:
    """Return "backlog 128", "epoll", "all CPUs", "900 idle connections"."""
    if name == RATE:
        return f"at {phrases.number(level)} req/s"
    if name == SHARE:
        return f"at {level:g} of its capacity"
    if name == "schedulers":
        return phrases.CPUS[level]
    if name == "idle_connections":
        return f"{phrases.number(level)} idle connections"
    if name == "opening" and not level:
        return "1,000 opened a second"
    if name in ("readiness", "configuration", "layer", "environment"):
        return str(level)
    return f"{name.replace('_', ' ')} {level}"
