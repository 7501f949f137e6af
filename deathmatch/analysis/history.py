"""What releases of a system cost, over the years: the experiment history.

In: `[release]` of each server.toml, and the points and probes of the experiment. Out: a frame with
a row for each release, in the order of its system and year.
"""

import polars as pl

from deathmatch.analysis import searched, stats
from deathmatch.analysis.by_trial import shared_rounds, values
from deathmatch.plan import files
from deathmatch.quantities.definitions import CPU_PER_REPLY, LARGEST_RSS
from deathmatch.quantities.quantity import Quantity

EXPERIMENT = "history"
RELEASE = {
    "system": pl.String,
    "year": pl.Int64,
    "release": pl.String,
    "runtime": pl.String,
    "jump": pl.String,
    "server": pl.String,
}


def releases() -> pl.DataFrame:
    """Return a row for each server that is a dated release of a system, with RELEASE's columns."""
    rows = [
        {
            "system": server.release.system,
            "year": server.release.year,
            "release": server.release.name,
            "runtime": server.release.runtime,
            "jump": server.release.jump,
            "server": server.name,
        }
        for server in files.servers()
        if EXPERIMENT in server.experiments and server.release and server.release.system
    ]
    return pl.DataFrame(rows, schema=RELEASE).drop_nulls("year").sort("system", "year", "server")


def of_quantity(points: pl.DataFrame, quantity: Quantity) -> pl.DataFrame:
    """Return for each release that was measured the interval of a quantity of its trials.

    Columns: those of RELEASE and of `stats.INTERVAL`. `points` are those that count.
    """
    answered = points.filter(pl.col("replies") > 0)
    by_trial = values(shared_rounds(answered, ["server"]), quantity, ["server"])
    return _dated(stats.summarise(by_trial, ["server"], quantity.name))


def capacities(probes: pl.DataFrame) -> pl.DataFrame:
    """Return for each release the rate that its search found, in requests per second.

    Columns: those of RELEASE and of `searched.FOUND_COLUMNS`.
    """
    return _dated(searched.capacities(probes, ["server"]))


def table(points: pl.DataFrame, probes: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each measured release with its costs.

    Columns: system, release, year, runtime, cpu_us, rss_mb, capacity_rps; medians over trials.
    """
    cost = of_quantity(points, CPU_PER_REPLY)
    memory = of_quantity(points, LARGEST_RSS).select("server", rss_mb=pl.col("median") / 1e6)
    found = capacities(probes).select("server", capacity_rps="median")
    joined = cost.join(memory, on="server", how="left").join(found, on="server", how="left")
    return joined.sort("system", "year", "server").select(
        "system", "release", "year", "runtime", "trials", "rss_mb", "capacity_rps", cpu_us="median"
    )


def _dated(frame: pl.DataFrame) -> pl.DataFrame:
    return releases().join(frame, on="server", how="inner", maintain_order="left")
