"""Planted limits: how often the harness says whose limit a point shows, and is right.

    ./shell python bench/limits.py [--runs 10]

A fast and a slow server, the null server's code, are measured by httperf as it is, and by one that
a preloaded library slows down as it reads. Where other work takes the CPUs, "client" and "testbed"
are right answers for every server. Each run is judged by itself, from one point of each server; ten
runs share a trial, at rates that differ by one request a second. In a clone of its own.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deathmatch.data import laws, limits  # noqa: E402
from deathmatch.quantities.quantity import RATE  # noqa: E402

PLANTS = Path(__file__).with_suffix("")
SOUND_RPS, HIGH_RPS = 500, 2500
"""At the first nobody is at a limit; at the second, and above, whoever is slow."""
RUNS_A_TRIAL = 10
SECONDS_A_RUN = 7
"""Six points of at most DURATION_S and TIMEOUT_S, and what else a trial does; 14 s were measured on
two CPUs at a load of 8 to 11."""
DURATION_S = TIMEOUT_S = 0.5
SLOW_SERVER_US, SLOW_CLIENT_US = 800, 700
CLIENTS = ("free", "slow")
SLOW_CLIENT = Path("build/slow-client")
# By server and client: what a point at the higher rate shows. Where both are slow, the client is
# the slower one if it reads less than the server sends.
EXPECTED = {
    ("fast", "free"): {"none"},
    ("slow", "free"): {"server"},
    ("fast", "slow"): {"client", "testbed"},
    ("slow", "slow"): {"client", "testbed", "server"},
}
# What is printed of a sound point that was called limited.
SHOWN = (
    *("on_time_ratio", "server_cpu_ratio", "client_limited", "actual_rate_rps"),
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
_DATASET = """\
title = "planted limits"
trials = {trials}
seed = 1

[experiments.backlog]
rates_rps = {rates_rps}
duration_s = {duration_s}

[[experiments.backlog.grids]]
servers = ["null", "planted-fast", "planted-slow"]
backlog = [128]
schedulers = ["one"]
somaxconn = [4096]
"""


def plant(clone: Path, runs: int) -> None:
    """Add the servers, the slow client and a dataset for each client to a clone."""
    plant_server(clone, "planted-fast", "", "spin.h", "slow_send.h")
    slow = f"-DSPIN_US={SLOW_SERVER_US} -include slow_send.h"
    plant_server(clone, "planted-slow", slow, "spin.h", "slow_send.h")
    rates_rps = [SOUND_RPS, *range(HIGH_RPS, HIGH_RPS + min(runs, RUNS_A_TRIAL))]
    trials = -(-runs // RUNS_A_TRIAL)
    for client in CLIENTS:
        text = _DATASET.format(trials=trials, rates_rps=rates_rps, duration_s=DURATION_S)
        (clone / f"config/datasets/planted-{client}.toml").write_text(text)
    # What is late is late after 100 ms: to wait for what was dropped tells no more.
    experiment = clone / "experiments/backlog.toml"
    text = experiment.read_text()
    assert text.count("timeout_s = 5\n") == 1, experiment
    experiment.write_text(text.replace("timeout_s = 5\n", f"timeout_s = {TIMEOUT_S}\n"))
    folder = clone / SLOW_CLIENT
    folder.mkdir(parents=True)
    library, real = folder / "slow_read.so", shutil.which("httperf")
    source = [PLANTS / "slow_read.c", f"-DSPIN_US={SLOW_CLIENT_US}"]
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", *source, "-o", library], check=True)
    wrapper = folder / "httperf"
    wrapper.write_text(f'#!/bin/sh\nLD_PRELOAD={library} exec {real} "$@"\n')
    wrapper.chmod(0o755)


def plant_server(clone: Path, name: str, words: str, *headers: str) -> None:
    """Add a server to a clone: the null server's code, compiled with words and files of PLANTS."""
    folder = clone / "servers" / name
    folder.mkdir()
    for file in (clone / "servers/null/null.c", *(PLANTS / header for header in headers)):
        shutil.copy(file, folder)
    (folder / "server.toml").write_text(_SERVER.format(name=name, words=words))


def run(clone: Path, client: str) -> None:
    """Measure a client's dataset, which `plant` has added to the clone."""
    path = os.environ["PATH"]
    if client == "slow":
        path = f"{clone / SLOW_CLIENT}{os.pathsep}{path}"
    dataset = f"planted-{client}"
    words = [
        "snakemake",
        f"data/{dataset}/backlog/points.parquet",
        "--config",
        f"dataset={dataset}",
    ]
    own = {"PATH": path, "PYTHONPATH": str(clone / "workflow/plugins")}
    subprocess.run(words, cwd=clone, env=os.environ | own, check=True)


def measured(clone: Path, runs: int) -> pl.DataFrame:
    """Make a clone, measure all clients' datasets in it, and return their judged points."""
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{ROOT}", clone], check=True)
    plant(clone, runs)
    for number, client in enumerate(CLIENTS, 1):
        print(f"{client} client, {number} of {len(CLIENTS)}", flush=True)
        run(clone, client)
    return pl.concat([judged(clone, client) for client in CLIENTS])


def judged(clone: Path, client: str) -> pl.DataFrame:
    """Return a client's points, each judged by itself: server, client, n, rate and `limit`."""
    folder = clone / f"data/planted-{client}/backlog"
    names = ("trials", "points", "times", "samples", "seconds")
    tables = {name: pl.read_parquet(folder / f"{name}.parquet") for name in names}
    runs = tables["points"].select("n", RATE).unique().sort("n", RATE).rows()
    marked = [limits.marked(laws.evidence("backlog", _of_run(tables, *run))) for run in runs]
    return pl.concat(marked).select(
        pl.col("server").str.strip_prefix("planted-"),
        *("n", RATE, "limit", *SHOWN),
        client=pl.lit(client),
    )


def _of_run(tables: dict[str, pl.DataFrame], n: int, rate_rps: int) -> dict[str, pl.DataFrame]:
    """Return the rows of one run, which are its trial's where a table has no rates."""
    return {
        name: table.filter(n=n, **({RATE: rate_rps} if RATE in table.columns else {}))
        for name, table in tables.items()
    }


def at_limit(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points at rates at which whoever is slow is at its limit."""
    return points.filter(pl.col(RATE) >= HIGH_RPS)


def counted(points: pl.DataFrame) -> pl.DataFrame:
    """Return by server and client how many points were called what, and how many rightly."""
    rows = []
    for (server, client), group in at_limit(points).group_by(
        "server", "client", maintain_order=True
    ):
        if (server, client) not in EXPECTED:
            continue
        called = dict(group.group_by("limit", maintain_order=True).len().iter_rows())
        right = sum(called.get(name, 0) for name in EXPECTED[server, client])
        rows.append((server, client, right, len(group), str(called)))
    names = ["server", "client", "right", "of", "called"]
    return pl.DataFrame(rows, schema=names, orient="row")


def accused(points: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return the sound points that were called limited by anything, and how many are sound."""
    fast = (pl.col("server") == "fast") & (pl.col("client") == "free")
    sound = points.filter(fast | (pl.col(RATE) == SOUND_RPS))
    return sound.filter(pl.col("limit").ne_missing("none")), len(sound)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    print(f"{runs} runs: about {runs * SECONDS_A_RUN / 60 + 1:.0f} min", flush=True)
    began_s = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="limits-"))
    try:
        points = measured(folder / "clone", runs)
    except subprocess.CalledProcessError:
        # The logs of a trial that failed are there.
        sys.exit(f"bench/limits.py: a command failed; its clone stays in {folder}")
    shutil.rmtree(folder)
    with pl.Config(
        tbl_rows=-1, tbl_cols=-1, tbl_width_chars=260, fmt_str_lengths=99,
        tbl_hide_dataframe_shape=True,
    ):  # fmt: skip
        print(counted(points))
        wrong, sound = accused(points)
        print(f"sound points accused: {len(wrong)} of {sound}")
        print(wrong)
    print(f"{(time.monotonic() - began_s) / runs:.1f} s a run")


if __name__ == "__main__":
    main()
