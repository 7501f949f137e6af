"""Costs and capacities of a system's releases over the years: the experiment history.

In: `[release]` of each server.toml, the points and probes of the experiment, and the posts' rates.
Out: frames with a row for each release, or for each pair of neighbours, in the order of system,
year and runtime.
"""

import re

import polars as pl

from deathmatch.analysis import published, searched, stats, trial_tests
from deathmatch.analysis.by_trial import shared_rounds, values
from deathmatch.plan import files
from deathmatch.plan.server import Release
from deathmatch.quantities.definitions import CPU_PER_REPLY
from deathmatch.quantities.quantity import RATE, Quantity

EXPERIMENT = "history"
JUMP = 4 / 3
"""A jump: of two consecutive releases, one costs over a third more than the other."""

NEAR_YEARS = 3
"""A release is of a post's time if it is at most so many years before or after it."""

OWN_RUNTIME = "its own"
"""The runtime of a release that is one itself."""


RELEASE = {
    "system": pl.String, "year": pl.Int64, "release": pl.String, "runtime": pl.String,
    "jump": pl.String, "server": pl.String,
}  # fmt: skip
CHANGE = {
    "system": pl.String, "before": pl.String, "after": pl.String, "same_release": pl.Boolean,
    "runtime": pl.String, "why": pl.String, **stats.INTERVAL, "chance": pl.Float64,
}  # fmt: skip
"""Columns of two releases, `before` and `after`.

`same_release`: on another runtime. `why`: the cause of a jump, by the later release's server.toml.
INTERVAL is of a quantity's ratio, later over earlier, paired by round: the geometric mean with
Student's interval, as for a claim; `chance` is its p-value, null with fewer than two rounds.
"""

# The name here of systems that the sources name differently.
_CALLED = {"Yucan": "OTP", "eventlet wsgi": "eventlet"}
_SOURCES = ("walkin2009", "day2011", "ostinelli2011")


def releases() -> pl.DataFrame:
    """Return a row for each server that is a dated release of a system, with RELEASE's columns.

    `year` is that of the release, or of the series for a runtime, whose later releases repair it.
    """
    rows = [
        {
            "system": server.release.system,
            "year": _year(server.release),
            "release": server.release.name,
            "runtime": server.release.runtime or OWN_RUNTIME,
            "jump": server.release.jump,
            "server": server.name,
        }
        for server in files.servers()
        if EXPERIMENT in server.experiments and server.release and server.release.system
    ]
    dated = [row for row in rows if row["year"]]
    return pl.DataFrame(sorted(dated, key=_order), schema=RELEASE)


def _order(row: dict) -> tuple:
    # Within a year by release, within a release by runtime: OpenJDK 8 before 25.
    numbers = [
        [int(number) for number in re.findall(r"\d+", name)]
        for name in (_library(row), row["runtime"])
    ]
    return row["system"].lower(), row["year"], *numbers


def _library(row: dict) -> str:
    """Return "Netty 4.1.68" of "Netty 4.1.68 on OpenJDK 8u504" or "Netty 4.1.68, epoll"."""
    return re.split(r",| on ", row["release"])[0]


def _year(release: Release) -> int | None:
    # The series of a release on a runtime may be that of the runtime.
    own = None if release.runtime else release.series_year
    return own or release.year


def over_years(points: pl.DataFrame, quantity: Quantity) -> pl.DataFrame:
    """Return for each release that was measured the interval of a quantity over its trials.

    Columns: those of RELEASE and of `stats.INTERVAL`. `points` are those that count, of the rounds
    that all releases of a system have.
    """
    trials = releases().select("system", "server").join(by_trial(points, quantity), on="server")
    shared = [
        shared_rounds(system, ["server"])
        for _, system in trials.group_by("system", maintain_order=True)
    ]
    rounds = pl.concat([trials.clear(), *shared])
    return _dated(stats.summarise(rounds, ["server"], quantity.name))


def capacities(probes: pl.DataFrame) -> pl.DataFrame:
    """Return for each release the rate that its searches found, in requests per second.

    Columns: those of RELEASE and of `searched.FOUND_COLUMNS`.
    """
    return _dated(searched.capacities(probes, ["server"]))


def capacity_by_trial(probes: pl.DataFrame) -> pl.DataFrame:
    """Return server, n and capacity_rps of each search; null if it found none."""
    found = pl.when(pl.col("outcome") == searched.FOUND).then(searched.CAPACITY)
    return searched.ends(probes).select("server", "n", found.alias(searched.CAPACITY))


def by_trial(points: pl.DataFrame, quantity: Quantity = CPU_PER_REPLY) -> pl.DataFrame:
    """Return a quantity of each trial that has a point at every rate: server, n, its name.

    A trial without one of the rates would compare another load.
    """
    answered = points.filter(pl.col("replies") > 0)
    rates = pl.col(RATE).n_unique()
    whole = answered.filter(rates.over("server", "n") == answered[RATE].n_unique())
    return values(whole, quantity, ["server"])


def published_rates() -> pl.DataFrame:
    """Return the highest reply rate of each post's systems with one process.

    Columns: system, year, reply_rate_rps, source.
    """
    rows = pl.concat(
        [published.load(source) for source in _SOURCES], how="diagonal_relaxed"
    ).filter(
        pl.col("place").str.starts_with("post:"),
        pl.col("quantity") == "reply_rate",
        pl.col("schedulers").fill_null("one") == "one",
        pl.col("processes").fill_null(1) == 1,
    )
    named = rows.with_columns(
        pl.col("system").replace(_CALLED), year=pl.col("source").str.slice(-4).cast(pl.Int64)
    ).filter(pl.col("system").is_in(releases()["system"].to_list()))
    by = ["system", "year", "source"]
    highest = named.group_by(by, maintain_order=True).agg(reply_rate_rps=pl.col("value").max())
    return highest.sort("system", "year")


def against_posts(capacities: pl.DataFrame) -> pl.DataFrame:
    """Return for each post's rate the capacity of the system's release nearest to its year.

    Columns: those of `published_rates`, release, and INTERVAL of the capacity over that rate. The
    first in `releases` of two equally near ones counts. A system without a release within
    NEAR_YEARS, or without a capacity, has no row.
    """
    rows, posts = [], published_rates()
    for post in posts.to_dicts():
        apart = (pl.col("year") - post["year"]).abs()
        nearest = (
            capacities.filter(pl.col("system") == post["system"], apart <= NEAR_YEARS)
            .sort(apart, maintain_order=True)
            .head(1)
            .filter(outcome=searched.FOUND)
        )
        for release in nearest.to_dicts():
            ends = {end: release[end] / post["reply_rate_rps"] for end in ("median", "low", "high")}
            rows.append(post | {name: release[name] for name in ("release", "trials")} | ends)
    schema = posts.schema | {"release": pl.String} | stats.INTERVAL
    return pl.DataFrame(rows, schema=schema)


def changes(trials: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each release and the one before it, as CHANGE has it.

    `trials` as `by_trial` returns them. Neighbours may be one release on two runtimes.
    """
    rows = [
        _change(trials, _predecessor(after, measured[:position]), after, CPU_PER_REPLY.name)
        for _, system in _measured(trials).group_by("system", maintain_order=True)
        for measured in [system.to_dicts()]
        for position, after in enumerate(measured)
        if position
    ]
    return pl.DataFrame(rows, schema=CHANGE)


def main_line(releases_of_a_system: pl.DataFrame) -> pl.DataFrame:
    """Return the last release and its predecessors, in order.

    A release on a runtime that no later release has is left out, such as Tornado 2.4.1 on PyPy.
    `releases_of_a_system` has the columns and order of `releases`.
    """
    rows = releases_of_a_system.to_dicts()
    positions = [len(rows) - 1] if rows else []
    while positions and positions[-1] > 0:
        before = _predecessor(rows[positions[-1]], rows[: positions[-1]])
        positions.append(rows.index(before))
    return releases_of_a_system[sorted(positions)]


def since_first(trials: pl.DataFrame, quantity: str = CPU_PER_REPLY.name) -> pl.DataFrame:
    """Return a row for the last release of each system and its first one, as CHANGE has it.

    `trials` as `by_trial` or `capacity_by_trial` return them. One release alone has no row.
    """
    rows = [
        _change(trials, system.row(0, named=True), system.row(-1, named=True), quantity)
        for _, system in _measured(trials).group_by("system", maintain_order=True)
        if len(system) > 1
    ]
    return pl.DataFrame(rows, schema=CHANGE)


def jumps(changed: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `changes` whose ratio is beyond JUMP either way, the largest first."""
    size = pl.max_horizontal(pl.col("median"), 1 / pl.col("median"))
    return changed.filter(size > JUMP).sort(size, descending=True)


def _measured(trials: pl.DataFrame) -> pl.DataFrame:
    return releases().filter(pl.col("server").is_in(trials["server"].to_list()))


def _predecessor(release: dict, earlier: list[dict]) -> dict:
    """Return the same release on another runtime, else the last on its runtime, else the last."""
    same_release = [row for row in earlier if _library(row) == _library(release)]
    same_runtime = [row for row in earlier if row["runtime"] == release["runtime"]]
    return (same_release or same_runtime or earlier)[-1]


def _change(trials: pl.DataFrame, before: dict, after: dict, quantity: str) -> dict:
    server = pl.col("server")
    sides = server == after["server"], server == before["server"]
    ratios = stats.ratios(trials, *sides, quantity)
    runtimes = list(dict.fromkeys([before["runtime"], after["runtime"]]))
    about = {
        "system": after["system"],
        "before": before["release"],
        "after": after["release"],
        "same_release": _library(before) == _library(after),
        "runtime": ", then ".join(runtimes),
        "why": after["jump"] or "unknown",
    }
    known = trial_tests.mean_interval(ratios, trial_tests.ERROR)
    return about | known.row | {"chance": trial_tests.chance_of_ratio(ratios)}


def _dated(frame: pl.DataFrame) -> pl.DataFrame:
    return releases().join(frame, on="server", how="inner", maintain_order="left")
