"""Planted limits: how often the harness says whose limit a point shows, and is right.

    ./shell python bench/limits.py [--runs 10]

A fast and a slow server, the null server's code, are measured by httperf as it is, and by one that
a preloaded library slows down as it reads. Where other work
takes the CPUs, "client" and "testbed" are right answers for every server. In a clone of its own;
about 20 s for each run.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
PLANTS = Path(__file__).with_suffix("")
RATES_RPS = [500, 2500]
"""At the first nobody is at a limit; at the second whoever is slow."""
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
_SERVER = """\
title = "{name} of bench/limits.py"
language = "C"
source = "ours"
about = "The null server, with {spin_us} µs more of CPU time for each answer."
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
trials = {runs}
seed = 1

[experiments.backlog]
rates_rps = {rates_rps}
duration_s = 1

[[experiments.backlog.grids]]
servers = ["null", "planted-fast", "planted-slow"]
backlog = [128]
schedulers = ["one"]
somaxconn = [4096]
"""


def plant(clone: Path, runs: int) -> None:
    """Add the servers, the slow client and a dataset for each client to a clone."""
    for name, spin_us in {"planted-fast": 0, "planted-slow": SLOW_SERVER_US}.items():
        folder = clone / "servers" / name
        folder.mkdir()
        for file in (clone / "servers/null/null.c", PLANTS / "spin.h", PLANTS / "slow_send.h"):
            shutil.copy(file, folder)
        words = f"-DSPIN_US={spin_us} -include slow_send.h" if spin_us else ""
        text = _SERVER.format(name=name, spin_us=spin_us, words=words)
        (folder / "server.toml").write_text(text)
    for client in CLIENTS:
        text = _DATASET.format(runs=runs, rates_rps=RATES_RPS)
        (clone / f"config/datasets/planted-{client}.toml").write_text(text)
    folder = clone / SLOW_CLIENT
    folder.mkdir(parents=True)
    library, real = folder / "slow_read.so", shutil.which("httperf")
    source = [PLANTS / "slow_read.c", f"-DSPIN_US={SLOW_CLIENT_US}"]
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", *source, "-o", library], check=True)
    wrapper = folder / "httperf"
    wrapper.write_text(f'#!/bin/sh\nLD_PRELOAD={library} exec {real} "$@"\n')
    wrapper.chmod(0o755)


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


def measured(clone: Path, client: str) -> pl.DataFrame:
    """Return the points of a client's dataset at the higher rate: server, n and `limit`."""
    points = pl.read_parquet(clone / f"data/planted-{client}/backlog/points.parquet")
    return points.filter(pl.col("offered_rate_rps") == RATES_RPS[-1]).select(
        pl.col("server").str.strip_prefix("planted-"), "n", "limit", "server_cpu_ratio",
        "on_time_ratio", client=pl.lit(client),
    )  # fmt: skip


def judged(points: pl.DataFrame) -> pl.DataFrame:
    """Return by server and client how many points were called what, and how many rightly."""
    rows = []
    for (server, client), group in points.group_by("server", "client", maintain_order=True):
        if (server, client) not in EXPECTED:
            continue
        called = dict(group.group_by("limit", maintain_order=True).len().iter_rows())
        right = sum(called.get(name, 0) for name in EXPECTED[server, client])
        rows.append((server, client, right, len(group), str(called)))
    names = ["server", "client", "right", "of", "called"]
    return pl.DataFrame(rows, schema=names, orient="row")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory(prefix="limits-") as folder:
        clone = Path(folder) / "clone"
        subprocess.run(
            ["git", "clone", "--quiet", "--depth=1", f"file://{ROOT}", clone], check=True
        )
        plant(clone, runs)
        for client in CLIENTS:
            run(clone, client)
        points = pl.concat([measured(clone, client) for client in CLIENTS])
    with pl.Config(tbl_rows=-1, fmt_str_lengths=99, tbl_hide_dataframe_shape=True):
        print(judged(points))


if __name__ == "__main__":
    main()
