"""Whether what a dataset says stays when a random half of its trials is left out.

In: a dataset and its ledger. Out: frames of its verdicts, of its orders of servers and of its
headline ratios, each with what it comes to in DRAWS random halves. A half has too few trials for an
interval, so it is judged by its medians alone; this shows how far a result leans on single trials,
and does not test it.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import polars as pl
from scipy.stats import spearmanr

from deathmatch.analysis import judging, published, releases, rules, selecting
from deathmatch.analysis.ledger import Entry
from deathmatch.analysis.reply_rates import RATE
from deathmatch.analysis.values import in_shared_blocks
from deathmatch.data import tables
from deathmatch.errors import UserError
from deathmatch.plan import files
from deathmatch.quantities.definitions import CPU_PER_REPLY, PEAK

DRAWS = 20
"""How many random halves are drawn."""
SEED = 2009
RUNS = (3, 5, 7, 9, 12, 15)
"""Numbers of trials that variants of one dataset have."""
# Statistics that order servers, by experiment.
ORDERED_BY = {
    "single-thread": PEAK,
    "dynamic": PEAK,
    "static": CPU_PER_REPLY.name,
    "scale-out": PEAK,
    "c10k": "message_latency_p95_us",
}
_YUCAN = {"server": "yucan", "schedulers": "one"}
_IDLE = {"server": "c-readiness", "idle_connections": 8000, RATE: 200}
HEADLINES = {
    "replies a second with a backlog of 128, over 5": (
        "backlog",
        {
            "statistic": PEAK,
            "a": _YUCAN | {"backlog": 128},
            "b": _YUCAN | {"backlog": 5},
        },
    ),
    "CPU for each reply with 8000 idle connections, poll over epoll": (
        "readiness",
        {
            "statistic": CPU_PER_REPLY.name,
            "a": _IDLE | {"readiness": "poll"},
            "b": _IDLE | {"readiness": "epoll"},
        },
    ),
    "CPU for each reply, epoll with 8000 idle connections over none": (
        "readiness",
        {
            "statistic": CPU_PER_REPLY.name,
            "a": _IDLE | {"readiness": "epoll"},
            "b": _IDLE | {"readiness": "epoll", "idle_connections": 0},
        },
    ),
}
"""The ratios of the paper's first figure: (experiment, what is divided by what) by name."""

VERDICTS = {
    "claim": pl.String,
    "source": pl.String,
    "says": pl.String,
    "when": pl.String,
    "verdict": pl.String,
    "same": pl.Int64,  # halves whose medians say the same
    "other": pl.Int64,  # halves whose medians say the opposite
    "open": pl.Int64,  # halves that say nothing, as where a variant has no trial left
}
ORDERS = {
    "experiment": pl.String,
    "statistic": pl.String,
    "servers": pl.Int64,
    "least": pl.Float64,  # Spearman's correlation with the order by all trials
    "median": pl.Float64,
}
HEADLINE = {
    "says": pl.String,
    "all": pl.Float64,  # the median ratio over all trials
    "least": pl.Float64,  # the median ratios over halves
    "most": pl.Float64,
}


def kept(last: int, draw: random.Random) -> frozenset[int]:
    """Return the trial numbers that stay, up to `last`: a random half, the odd one included.

    Half of each run of trials between two of RUNS, so that variants of more trials keep what
    those of fewer trials keep, and pairs stay pairs.
    """
    ends = [at for at in (0, *RUNS) if at < last] + [last]
    chosen: list[int] = []
    for before, end in pairwise(ends):
        chosen += draw.sample(range(before + 1, end + 1), (end + 1) // 2 - (before + 1) // 2)
    return frozenset(chosen)


def draws(last: int) -> list[frozenset[int]]:
    """Return DRAWS random halves of the trial numbers up to `last`; the same every time."""
    draw = random.Random(SEED)
    return [kept(last, draw) for _ in range(DRAWS)]


@dataclass(frozen=True)
class Halves:
    """What random halves of a dataset's trials give.

    `verdicts`: each verdict, replicated or not, with what halves say, columns VERDICTS. `orders`:
    how each experiment's order of servers correlates with that of halves, columns ORDERS, without
    a row for fewer than three servers. `headlines`: the ratios of HEADLINES over all trials and
    the range of halves, columns HEADLINE.
    """

    verdicts: pl.DataFrame
    orders: pl.DataFrame
    headlines: pl.DataFrame


def halves(dataset: str, ledger: Sequence[Entry]) -> Halves:
    """Return what random halves of the dataset's trials give; `ledger` is of all of them."""
    stated = _stated(ledger)
    deciders = dict.fromkeys((dataset, *(decider for decider, *_ in stated)))
    orders = {name: _medians(dataset, name, statistic) for name, statistic in ORDERED_BY.items()}
    orders = {name: medians for name, medians in orders.items() if len(medians) >= 3}
    headlines = _headlines(dataset)

    def again() -> tuple[list[str], dict[str, dict[str, float]], list[float | None]]:
        judged = [
            rules.decide(decider, claim["experiment"], claim["rule"]).verdict
            for decider, claim, _, _ in stated
        ]
        ordered = {name: _medians(dataset, name, ORDERED_BY[name]) for name in orders}
        return judged, ordered, _headlines(dataset)

    judged, ordered, ratios = zip(*_each_half(deciders, again), strict=True)
    return Halves(_verdicts(stated, judged), _orders(orders, ordered), _ranges(headlines, ratios))


def _stated(ledger: Sequence[Entry]) -> list[tuple[str, dict, str, str]]:
    """Return the dataset that decides, the claim, when, as the ledger has it, and the verdict."""
    claims = {claim["id"]: claim for claim in published.claims()}
    stated = []
    for entry in ledger:
        for when, verdict in entry.verdicts.items():
            if verdict.verdict in (judging.REPLICATED, judging.NOT):
                chosen = releases.then if when == "then" else releases.now
                claim = chosen(entry.dataset, claims[entry.claim])
                stated.append((entry.dataset, claim, when, verdict.verdict))
    return stated


def _verdicts(
    stated: Sequence[tuple[str, dict, str, str]], judged: Sequence[Sequence[str]]
) -> pl.DataFrame:
    rows = [
        {"claim": claim["id"], "source": claim["source"], "says": claim["claim"], "when": when}
        | {"verdict": verdict, "same": 0, "other": 0, "open": 0}
        for _, claim, when, verdict in stated
    ]
    opposite = {judging.REPLICATED: judging.NOT, judging.NOT: judging.REPLICATED}
    for half in judged:
        for row, verdict in zip(rows, half, strict=True):
            counter = {row["verdict"]: "same", opposite[row["verdict"]]: "other"}
            row[counter.get(verdict, "open")] += 1
    return pl.DataFrame(rows, schema=VERDICTS)


def _orders(
    whole: dict[str, dict[str, float]], halves: Sequence[dict[str, dict[str, float]]]
) -> pl.DataFrame:
    rows = []
    for experiment, medians in whole.items():
        correlations = [_correlation(half[experiment], medians) for half in halves]
        rows.append(
            {
                "experiment": experiment,
                "statistic": ORDERED_BY[experiment],
                "servers": len(medians),
                "least": min(correlations),
                "median": pl.Series(correlations).median(),
            }
        )
    return pl.DataFrame(rows, schema=ORDERS)


def _correlation(one: dict[str, float], other: dict[str, float]) -> float:
    """Return Spearman's correlation between two orders of the servers that both have."""
    both = sorted(one.keys() & other.keys())
    sides = [[order[server] for server in both] for order in (one, other)]
    return float(spearmanr(*sides).statistic)


def _headlines(dataset: str) -> list[float | None]:
    return [rules.compared(dataset, *headline).estimate for headline in HEADLINES.values()]


def _ranges(
    whole: Sequence[float | None], halves: Sequence[Sequence[float | None]]
) -> pl.DataFrame:
    rows = []
    for place, says in enumerate(HEADLINES):
        known = [half[place] for half in halves if half[place] is not None]
        if whole[place] is not None and known:
            rows.append(
                {"says": says, "all": whole[place], "least": min(known), "most": max(known)}
            )
    return pl.DataFrame(rows, schema=HEADLINE)


def _medians(dataset: str, experiment: str, statistic: str) -> dict[str, float]:
    """Return the median over trials by server, of the variant that stands for it.

    In the rounds that all of them have, and at the rates, where the statistic depends on them.
    """
    rule = {"over": "server", "statistic": statistic}
    servers = selecting.measured_levels(dataset, experiment, rule)
    selectors = [{"server": server} for server in servers]
    sides = selecting.compared_values(dataset, experiment, rule, selectors)
    by_server = zip(servers, in_shared_blocks(sides), strict=True)
    return {server: float(pl.Series(known.all).median()) for server, known in by_server if known}


def _each_half(datasets: Iterable[str], compute: Callable[[], Any]) -> Iterator[Any]:
    """Compute something on each random half, by medians; halves that are the same once."""
    whole = {key: frame for name in datasets for key, frame in _tables(name).items()}
    last = max((frame["n"].max() for frame in whole.values() if len(frame)), default=0)
    known = {}
    for half in draws(last):
        if half not in known:
            with _only(whole, half):
                known[half] = compute()
        yield known[half]


@contextmanager
def _only(whole: dict, half: frozenset[int]) -> Iterator[None]:
    given = {key: frame.filter(pl.col("n").is_in(half)) for key, frame in whole.items()}
    with selecting.instead(given), rules.by_medians():
        yield


def _tables(dataset: str) -> dict[tuple[str, str, str], pl.DataFrame]:
    frames = {}
    for experiment in files.names("experiment"):
        for table in ("points", "trials"):
            try:
                frames[dataset, experiment, table] = tables.read(dataset, experiment, table)
            except UserError:
                continue
    return frames
