"""How much CPU time the load left to the server of each trial, on real CPUs or on emulated ones.

In: an experiment's trials and samples. Out: a row for each trial.
"""

import polars as pl

from deathmatch.analysis.reply_rates import REPLY
from deathmatch.data import emulation

_TRIAL = ["server", "variant", "n"]
SCHEMA = {
    "server": pl.String, "variant": pl.String, "n": pl.Int64, "left": pl.Float64,
    "emulated": pl.Boolean, "guards": pl.String,
}  # fmt: skip


def by_trial(trials: pl.DataFrame | None, samples: pl.DataFrame | None) -> pl.DataFrame:
    """Return SCHEMA: the CPUs that the server of each trial could use, less the client's use.

    The client's use is that at the rate at which it used most, as far as both share CPUs; all of
    these where nobody counted. Of emulated CPUs `left` is how many there are, and `guards` says
    which guards are broken (`data.emulation`).
    """
    if trials is None:
        return pl.DataFrame(schema=SCHEMA)
    client = _client(samples)
    rows = []
    for row in trials.select(*_TRIAL, "server_cpus", "client_cpus", "throttle").iter_rows():
        *key, server, clients, throttle = row
        if server is None:
            continue
        said = dict(part.split(" ", 1) for part in (throttle or "").split("; ") if " " in part)
        shared = len({*server} & {*(clients or [])})
        left = len(server) - min(shared, client.get(tuple(key), shared))
        if "cpu_quota_us" in said:
            left = min(left, int(said["cpu_quota_us"]) / int(said["cpu_period_us"]))
        emulated = "emulated_cpus" in said
        if emulated:
            left = int(said["emulated_cpus"])
        guards = said.get("guards", "") if emulated else ""
        rows.append((*key, float(left), emulated, guards))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def broken(left: pl.DataFrame, points: pl.DataFrame | None, trials: pl.DataFrame) -> str:
    """Return the broken guards of trials with emulated CPUs, each once; empty if none is."""
    words = left.filter("emulated")["guards"].to_list()
    names = {name for word in words if word != emulation.MET for name in word.split(", ")}
    if points is not None:
        names |= {name for _, name, _ in emulation.of_several(_speeds(trials, points))}
    return ", ".join(sorted(names))


def _speeds(trials: pl.DataFrame, points: pl.DataFrame) -> list[emulation.Speed]:
    """Return what each trial with emulated CPUs came to."""
    cpus, period = (
        pl.col("throttle").str.extract(rf"{name} (\d+)").cast(pl.Int64).alias(name)
        for name in ("emulated_cpus", "cpu_period_us")
    )
    given = trials.select(*_TRIAL, cpus, period).drop_nulls()
    known = points.drop_nulls([REPLY, "server_cpu_ns", "replies"]).filter(pl.col("replies") > 0)
    fastest = known.sort(REPLY, descending=True, maintain_order=True).unique(
        _TRIAL, keep="first", maintain_order=True
    )
    rest = pl.col("variant").str.replace(r"\bschedulers=[^,]+,?", "")
    joined = fastest.join(given, on=_TRIAL, maintain_order="left").select(
        "server", rest, "schedulers", "emulated_cpus", "cpu_period_us", REPLY,
        pl.col("server_cpu_ns") / pl.col("replies"),
    )  # fmt: skip
    return [emulation.Speed((server, name), *more) for server, name, *more in joined.rows()]


def _client(samples: pl.DataFrame | None) -> dict[tuple, float]:
    """Return the CPUs that the load generators of each trial used, by its key."""
    if samples is None or samples.is_empty():
        return {}
    known = samples.drop_nulls(["offered_rate_rps", "client_cpu_ns"])
    span_us = pl.col("time_us").max() - pl.col("time_us").min()
    used_ns = pl.col("client_cpu_ns").max() - pl.col("client_cpu_ns").min()
    # The time with load ends with the last sample that has a load generator.
    running = known.filter(pl.col("client_cpu_ns") > 0)
    spans = running.group_by(*_TRIAL, "offered_rate_rps", maintain_order=True).agg(
        used=used_ns, span=1000 * span_us
    )
    used = spans.filter(pl.col("span") > 0).with_columns(cpus=pl.col("used") / pl.col("span"))
    most = used.group_by(_TRIAL, maintain_order=True).agg(pl.col("cpus").max())
    return {tuple(key): cpus for *key, cpus in most.select(*_TRIAL, "cpus").iter_rows()}
