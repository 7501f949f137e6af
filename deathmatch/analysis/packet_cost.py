"""Whose CPU time the kernel's work on packets is, from data/packets/<name>.json.

In: the record that `deathmatch packets` wrote. Out: microseconds of CPU per reply, by server and by
the way in which packets are charged (`hosts.packets`), with intervals over repetitions.
"""

import polars as pl

from deathmatch.analysis import stats
from deathmatch.analysis.committed import Record
from deathmatch.analysis.interval import Interval
from deathmatch.hosts.packets import MODES, PLAIN, THREADED
from deathmatch.quantities.definitions import CPU_PER_REPLY

KEY = ["server", "mode"]
# Parts of a reply's CPU time: the server's processes, the kernel's threads of either end.
PROCESS, SERVER_THREAD, CLIENT_THREAD = "server", "server_thread", "client_thread"
SCHEMA = {
    "server": pl.String, "mode": pl.String, "repetition": pl.Int64, "replies": pl.Int64,
    f"{PROCESS}_cpu_ns": pl.Int64, f"{SERVER_THREAD}_cpu_ns": pl.Int64,
    f"{CLIENT_THREAD}_cpu_ns": pl.Int64,
}  # fmt: skip


def per_reply(record: Record) -> pl.DataFrame:
    """Return a row for each reading: KEY, repetition, and each part's `<part>_us` per reply.

    `whole_us` is what the server's side does in all: its processes and its end's kernel thread.
    """
    frame = pl.DataFrame(record.readings, schema=SCHEMA)
    parts = [PROCESS, SERVER_THREAD, CLIENT_THREAD]
    costs = [
        CPU_PER_REPLY.of_trial.of_point(f"{part}_cpu_ns").alias(f"{part}_us") for part in parts
    ]
    whole = pl.col(f"{PROCESS}_us") + pl.col(f"{SERVER_THREAD}_us").fill_null(0)
    return frame.select(*KEY, "repetition", *costs).with_columns(whole_us=whole)


def table(readings: pl.DataFrame) -> pl.DataFrame:
    """Return KEY, INTERVAL of the processes' microseconds, medians of the other columns.

    Servers in the order of what they cost, ways in that of MODES.
    """
    costs = stats.summarise(readings, KEY, f"{PROCESS}_us")
    threads = readings.group_by(KEY, maintain_order=True).agg(
        pl.col(f"{SERVER_THREAD}_us", f"{CLIENT_THREAD}_us", "whole_us").median()
    )
    order = {mode: place for place, mode in enumerate(MODES)}
    cheapest = pl.col("median").min().over("server")
    return costs.join(threads, on=KEY).sort(
        cheapest, pl.col("mode").replace_strict(order, return_dtype=pl.Int64)
    )


def bias(readings: pl.DataFrame, server: str) -> Interval:
    """Return the interval of a server's CPU time as datasets count it over all that its side does.

    That is the processes' time by PLAIN over processes and thread by THREADED, paired by
    repetition. More than 1: charged with another's work. Less: some of its own is another's.
    """
    mine = readings.filter(server=server)
    cost = pl.when(mode=PLAIN).then(f"{PROCESS}_us").otherwise("whole_us")
    return stats.ratio(
        mine.with_columns(cost=cost), pl.col("mode") == PLAIN, pl.col("mode") == THREADED,
        "cost", "repetition",
    )  # fmt: skip
