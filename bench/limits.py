"""Planted limits: how often does the harness name the right limit of a point?

    ./shell python bench/limits.py [--runs 50] [--busy 0]

Servers with the null server's code, fast, slow, or sleeping, are measured by httperf and by
roundtrip, without and with a fault: another program on the server's CPU or on the client's, a
client that stops once, one that reads slowly. `--busy` starts programs that take any CPU; then
"client" and "other load" are right answers for every server. Each run is judged separately, by one
point of each server, and those of the null server from the run without a fault. Ten runs share a
trial, at rates that differ by one request a second. It measures in a clone of the project.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deathmatch.data import laws, limits  # noqa: E402
from deathmatch.plan import own_dataset  # noqa: E402
from deathmatch.quantities.quantity import RATE  # noqa: E402

PLANTS = Path(__file__).with_suffix("")
SOUND_RPS, LOW_RPS, HIGH_RPS = 500, 1500, 2500
"""At the first rate nothing is at a limit; from the second on, slow servers and clients are."""
RUNS_A_TRIAL = 10
SECONDS_A_RUN = 33
"""The time of points with both clients and every fault, and of the other steps of a trial."""
DURATION_S = TIMEOUT_S = 0.5
SERVERS = {
    "fast": "",
    # Half of a CPU at HIGH_RPS, and more than all of it.
    "burning": "-DSPIN_US=200 -include slow_send.h",
    "slow": "-DSPIN_US=800 -include slow_send.h",
    "sleeping": "-DPACED_RPS=1000 -include paced_send.h",
}
SLOW_CLIENT_US, PAUSE_US, LONG_PAUSE_US, PAUSE_AFTER_US = 700, 100_000, 400_000, 150_000
CLIENTS = HTTPERF, ROUNDTRIP = "httperf", "roundtrip"
QUIET = "no fault"
CLIENTS_CPU = "a program on the client's CPU"
PAUSED, READS_SLOWLY = "the client stops", "the client reads slowly"
WRAPPED = {
    PAUSED: ("pause.c", f"-DPAUSE_US={PAUSE_US}", f"-DLONG_PAUSE_US={LONG_PAUSE_US}",
             f"-DAFTER_US={PAUSE_AFTER_US}"),
    READS_SLOWLY: ("slow_read.c", f"-DSPIN_US={SLOW_CLIENT_US}"),
}  # fmt: skip
"""Libraries that are preloaded into the clients: the source, and options of the compiler."""


@dataclass(frozen=True)
class Fault:
    """A fault: a dataset's name, its servers, and the right limits of points from HIGH_RPS on.

    `busy_ms` are the times for which a program works and sleeps in turn, on the CPU of a side.
    """

    name: str
    servers: Sequence[str]
    truth: Mapping[str, set[str]]
    clients: Sequence[str] = CLIENTS
    busy_ms: tuple[float, float] | None = None
    on: str = "server_cpus"


OTHER, CLIENT = {limits.OTHER}, {limits.CLIENT}
FAULTS = {
    QUIET: Fault(
        "quiet", ("fast", "burning", "slow", "sleeping"),
        {"fast": {limits.NONE}, "burning": {limits.NONE}, "slow": {limits.SERVER},
         "sleeping": {limits.SERVER}, "slow, backlog 1": {limits.SERVER}},
    ),
    "a program on the server's CPU": Fault("full", ("burning",), {"burning": OTHER},
                                           busy_ms=(1, 0)),
    "30 % of the server's CPU": Fault("third", ("burning",), {"burning": OTHER}, busy_ms=(3, 7)),
    "bursts of 50 ms on the server's CPU": Fault("bursts", ("burning",), {"burning": OTHER},
                                                 busy_ms=(50, 50)),
    PAUSED: Fault("paused", ("fast", "burning"), {"fast": CLIENT, "burning": CLIENT}),
    CLIENTS_CPU: Fault("busy-client", ("fast", "burning"), {"fast": CLIENT, "burning": CLIENT},
                       busy_ms=(1, 0), on="client_cpus"),
    # If both are slow, the client is the limit if it reads less than the server sends.
    READS_SLOWLY: Fault("slow-reader", ("fast", "slow"), {
        "fast": {limits.CLIENT, limits.TESTBED},
        "slow": {limits.CLIENT, limits.TESTBED, limits.SERVER}}, clients=(HTTPERF,)),
}  # fmt: skip
BUSY_ANSWERS = {limits.CLIENT, limits.OTHER}
# The columns that are printed for a sound point with a limit.
SHOWN = (
    *("on_time_ratio", "server_cpu_ratio", *limits.SHARES, "actual_rate_rps"),
    *("client_cpu_total_percent", "look_interval_max_us"),
    *("connect_burst_connections", "connection_time_max_us", "errors_total"),
)
_SERVER = """\
title = "{name} of bench/limits"
language = "C"
source = "ours"
about = "The null server, made slower in a known way: {words}."
version = "cc --version | sed -n 1p"
experiments = ["backlog"]
build = "mkdir -p {{build}}/bin && cc -O2 -pthread -o {{build}}/bin/{name} {words} null.c"
run = "{name} {{experiment}} {{host}} {{port}} {{backlog}} {{workers}}"

[packages]
tools = ["cc"]
debian = ["gcc", "libc6-dev"]
nix = ["gcc"]

[factors]
backlog = []
schedulers = ["one", "all"]
"""
_BUSY = """\
import os, sys, time
parent = os.getppid()
work_s, sleep_s = (float(word) / 1000 for word in sys.argv[2:])
if sys.argv[1]:
    os.sched_setaffinity(0, map(int, sys.argv[1].split(",")))
while os.getppid() == parent:
    ends = time.perf_counter() + work_s
    while time.perf_counter() < ends:
        pass
    if sleep_s:
        time.sleep(sleep_s)
"""


def plant(clone: Path, runs: int, clients: Sequence[str] = CLIENTS) -> None:
    """Add the servers, the faulty clients and a dataset for each fault to a clone."""
    for name, words in SERVERS.items():
        plant_server(clone, f"planted-{name}", words, "spin.h", "slow_send.h", "paced_send.h")
    head = {"title": "planted limits", "trials": -(-runs // RUNS_A_TRIAL), "seed": 1}
    high = [*range(HIGH_RPS, HIGH_RPS + min(runs, RUNS_A_TRIAL))]
    for fault in FAULTS.values():
        chosen = [client for client in fault.clients if client in clients]
        rates_rps, grids = high, [_grid(chosen, fault.servers, 128)]
        if fault is FAULTS[QUIET]:
            rates_rps = [SOUND_RPS, LOW_RPS, *high]
            grids += [_grid(chosen, ("null",), 128), _grid(chosen, ("slow",), 1)]
        steps = {"rates_rps": rates_rps, "duration_s": DURATION_S}
        text = own_dataset.text(head, {"backlog": (steps, grids)})
        (clone / f"config/datasets/planted-{fault.name}.toml").write_text(text)
    # Replies are late after 100 ms: a longer wait for dropped ones makes no difference.
    experiment = clone / "experiments/backlog.toml"
    text = experiment.read_text()
    assert text.count("timeout_s = 5\n") == 1, experiment
    experiment.write_text(text.replace("timeout_s = 5\n", f"timeout_s = {TIMEOUT_S}\n"))
    for fault, (source, *words) in WRAPPED.items():
        folder = clone / "build" / FAULTS[fault].name
        folder.mkdir(parents=True)
        library = folder / "fault.so"
        command = ["cc", "-O2", "-shared", "-fPIC", PLANTS / source, *words, "-o", library]
        subprocess.run(command, check=True)
        for client in FAULTS[fault].clients:
            wrapper = folder / client
            wrapper.write_text(
                f'#!/bin/sh\nLD_PRELOAD={library} exec {shutil.which(client)} "$@"\n'
            )
            wrapper.chmod(0o755)


def _grid(clients: Sequence[str], servers: Sequence[str], backlog: int) -> dict[str, list]:
    names = [name if name == "null" else f"planted-{name}" for name in servers]
    return {"servers": names, "load_generator": [*clients], "backlog": [backlog],
            "schedulers": ["one"], "somaxconn": [4096]}  # fmt: skip


def plant_server(clone: Path, name: str, words: str, *headers: str) -> None:
    """Add a server with the null server's code to a clone, with options and files of PLANTS."""
    folder = clone / "servers" / name
    folder.mkdir()
    for file in (clone / "servers/null/null.c", *(PLANTS / header for header in headers)):
        shutil.copy(file, folder)
    (folder / "server.toml").write_text(_SERVER.format(name=name, words=words))


def with_programs(words: Sequence[str], programs: Sequence[tuple[str, float, float]]) -> list[str]:
    """Return a command that also runs programs, each with its CPUs ("": any) and two times in ms.

    A program works and sleeps in turn for these times. It is a child of the command, which does not
    wait for it as for other work, and ends with it.
    """
    for program in programs:
        busy = [sys.executable, "-c", _BUSY, *map(str, program)]
        words = ["sh", "-c", f"{shlex.join(busy)} & exec {shlex.join(words)}"]
    return [*words]


def run(clone: Path, name: str, busy: int = 0) -> None:
    """Measure a fault's dataset, which `plant` has added to the clone; QUIET must be the first.

    Meanwhile `busy` programs run on any CPU.
    """
    fault = FAULTS[name]
    path = os.environ["PATH"]
    if name in WRAPPED:
        path = f"{clone / 'build' / fault.name}{os.pathsep}{path}"
    dataset = f"planted-{fault.name}"
    table = f"data/{dataset}/backlog/points.parquet"
    words = ["snakemake", table, "--config", f"dataset={dataset}"]
    own = {"PATH": path, "PYTHONPATH": str(clone / "workflow/plugins")}
    programs = [("", 1, 0)] * busy
    if fault.busy_ms:
        (cpus,) = tables(clone, QUIET)["trials"][fault.on].unique().to_list()
        programs.append((",".join(map(str, cpus)), *fault.busy_ms))
    subprocess.run(with_programs(words, programs), cwd=clone, env=os.environ | own, check=True)


def measured(clone: Path, runs: int, busy: int) -> pl.DataFrame:
    """Make a clone, measure the dataset of each fault in it, and return their judged points."""
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{ROOT}", clone], check=True)
    plant(clone, runs)
    for number, name in enumerate(FAULTS, 1):
        print(f"{name}, {number} of {len(FAULTS)}", flush=True)
        run(clone, name, busy)
    return judged(clone, FAULTS)


def tables(clone: Path, fault: str) -> dict[str, pl.DataFrame]:
    """Return the tables of a fault's dataset."""
    folder = clone / f"data/planted-{FAULTS[fault].name}/backlog"
    names = ("trials", "points", "times", "samples", "seconds")
    return {name: pl.read_parquet(folder / f"{name}.parquet") for name in names}


def judged(
    clone: Path, faults: Sequence[str], clients: Sequence[str] = CLIENTS
) -> pl.DataFrame:  # fmt: skip
    """Return the points of faults, each judged separately.

    Columns: fault, server, client, n, rate, `limit`, `without_null` (the limit without the null
    server's points at that rate) and SHOWN.
    """
    quiet = tables(clone, QUIET)
    return pl.concat(
        _judged(fault, quiet, tables(clone, fault), client)
        for fault in faults
        for client in FAULTS[fault].clients
        if client in clients
    )


def _judged(
    fault: str, quiet: dict[str, pl.DataFrame], mine: dict[str, pl.DataFrame], client: str
) -> pl.DataFrame:
    of_null = {name: table.filter(server="null") for name, table in quiet.items()}
    both = mine if fault == QUIET else {
        name: pl.concat([of_null[name], table], how="diagonal_relaxed")
        for name, table in mine.items()
    }  # fmt: skip
    named = pl.col("variant").str.contains(f"load_generator={ROUNDTRIP}")
    both = {
        name: table.filter(named if client == ROUNDTRIP else ~named)
        for name, table in both.items()
    }  # fmt: skip
    highs = mine["points"].filter(pl.col(RATE) >= HIGH_RPS)
    made = []
    for n, rate_rps in highs.select("n", RATE).unique().sort("n", RATE).rows():
        given = _of_run(both, n, rate_rps)
        point = limits.marked(laws.evidence("backlog", given)).filter(
            # All runs of a trial share the other rates.
            (pl.col(RATE) == rate_rps) | (rate_rps == HIGH_RPS)
        )
        above = (pl.col("server") == "null") & (pl.col(RATE) == rate_rps)
        fewer = given | {"points": given["points"].filter(~above)}
        again = limits.marked(laws.evidence("backlog", fewer))
        keys = ["server", "variant", "n", RATE]
        made.append(point.join(again.select(*keys, without_null="limit"), on=keys, how="left"))
    marked = pl.concat(made).filter(pl.lit(fault == QUIET) | (pl.col("server") != "null"))
    one = pl.when(pl.col("variant").str.contains(r"backlog=1\b")).then(pl.lit(", backlog 1"))
    pause = pl.when(pl.col(RATE) % 2 == 1).then(pl.lit(LONG_PAUSE_US)).otherwise(PAUSE_US)
    text = pl.format("{} for {} ms", pl.lit(fault), pause // 1000)
    return marked.select(
        text.alias("fault") if fault == PAUSED else pl.lit(fault).alias("fault"),
        pl.col("server").str.strip_prefix("planted-") + one.otherwise(pl.lit("")),
        *("n", RATE, "limit", "without_null", *SHOWN),
        client=pl.lit(client),
    )


def _of_run(given: dict[str, pl.DataFrame], n: int, rate_rps: int) -> dict[str, pl.DataFrame]:
    """Return the rows of one run; those of its trial if a table has no rates."""
    rates = [SOUND_RPS, LOW_RPS, rate_rps]
    return {
        name: table.filter(pl.col(RATE).is_in(rates) if RATE in table.columns else True, n=n)
        for name, table in given.items()
    }


def at_limit(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points at rates at which a slow server or client is at its limit."""
    return points.filter(pl.col(RATE) >= HIGH_RPS)


def expected(fault: str, server: str) -> set[str]:
    """Return the right limits of a point of a fault; none if they are unknown."""
    (name,) = [name for name in FAULTS if fault.startswith(name)]
    return set(FAULTS[name].truth.get(server, ()))


def counted(
    points: pl.DataFrame, column: str = "limit", also: set[str] = frozenset()
) -> pl.DataFrame:  # fmt: skip
    """Return the numbers of points by limit, and of right ones, by fault, server and client.

    `also` has limits that are right for each.
    """
    rows = []
    by = ("fault", "server", "client")
    for key, group in at_limit(points).group_by(*by, maintain_order=True):
        if truth := expected(*key[:2]):
            called = dict(group.group_by(column, maintain_order=True).len().iter_rows())
            right = sum(called.get(name, 0) for name in truth | also)
            rows.append((*key, " or ".join(sorted(truth)), right, len(group), str(called)))
    names = [*by, "truth", "right", "of", "called"]
    return pl.DataFrame(rows, schema=names, orient="row").sort(*by[:2])


def accused(points: pl.DataFrame, also: set[str] = frozenset()) -> tuple[pl.DataFrame, int]:
    """Return the sound points that have a limit, and the number of all sound points."""
    fast = pl.col("server").is_in(["null", "fast", "burning"])
    slow = pl.col("server").is_in(["slow", "sleeping"]) & (pl.col(RATE) == SOUND_RPS)
    sound = points.filter(fast | slow, fault=QUIET)
    return sound.filter(~pl.col("limit").is_in([limits.NONE, *also])), len(sound)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50, help="for each client")
    parser.add_argument("--busy", type=int, default=0, metavar="PROGRAMS")
    given = parser.parse_args()
    print(f"{given.runs} runs: about {given.runs * SECONDS_A_RUN / 60 + 2:.0f} min", flush=True)
    began_s = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="limits-"))
    try:
        points = measured(folder / "clone", given.runs, given.busy)
    except subprocess.CalledProcessError:
        sys.exit(f"bench/limits.py: a command failed; its clone stays in {folder}")
    shutil.rmtree(folder)
    also = BUSY_ANSWERS if given.busy else set()
    with pl.Config(
        tbl_rows=-1, tbl_cols=-1, tbl_width_chars=260, fmt_str_lengths=99,
        tbl_hide_dataframe_shape=True,
    ):  # fmt: skip
        print(counted(points, also=also))
        print("the null server's points at these rates left out:")
        late = points.filter(pl.col("server").is_in(["slow", "sleeping", "slow, backlog 1"]))
        print(counted(late.filter(fault=QUIET), "without_null", also))
        wrong, sound = accused(points, also)
        print(f"sound points accused: {len(wrong)} of {sound}")
        print(wrong)
    print(f"{(time.monotonic() - began_s) / given.runs:.1f} s a run")


if __name__ == "__main__":
    main()
