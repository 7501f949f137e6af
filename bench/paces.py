"""The servers of c10k at two paces of the client: does the order of their costs depend on it?

    ./shell python bench/paces.py [--servers node-ws tornado-ws …] [--trials 3]

Ten thousand separate clients send each message when it is due (`step_s = 0`, as in c10k). A client
that sends in steps of 1 ms costs less, and gives the server ten messages at once. The trials of two
datasets, `pace-at-once` and `pace-1-ms`, take turns; their files in config/datasets are removed at
the end, and the results stay in data/. It prints the CPU time of an echo at both paces, the ratio,
and how many pairs of servers change their order. It needs a quiet machine, and 25 s for each trial
in addition to the builds.
"""

import argparse
import itertools
import os
import subprocess
import sys
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deathmatch.plan import own_dataset  # noqa: E402

SERVERS = ["erlang-cowboy", "gevent-websocket", "go-gonet", "node-ws", "perl-ev-ws", "pypy-tornado",
           "rust-ws", "tornado-ws", "ws-null"]  # fmt: skip
PACES_S = {"pace-at-once": 0, "pace-1-ms": 0.001}
STEPS = {"rates_rps": [10_000], "duration_s": 10, "warm_up_rate_rps": 1000, "warm_up_s": 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--servers", nargs="+", default=SERVERS)
    parser.add_argument("--trials", type=int, default=3)
    given = parser.parse_args()
    files = {name: ROOT / f"config/datasets/{name}.toml" for name in PACES_S}
    try:
        for trials in range(1, given.trials + 1):
            head = {"title": "c10k at one pace of the client", "trials": trials, "seed": 1}
            for name, file in files.items():
                plan = STEPS | {"step_s": PACES_S[name]}, [{"servers": given.servers}]
                file.write_text(own_dataset.text(head, {"c10k": plan}))
                measure(name)
    finally:
        for file in files.values():
            file.unlink(missing_ok=True)
    show([costs(name) for name in PACES_S])


def measure(dataset: str) -> None:
    """Measure the missing trials of a dataset, and make its tables."""
    words = ["snakemake", f"data/{dataset}/c10k/points.parquet", "--config", f"dataset={dataset}"]
    own = {"PYTHONPATH": str(ROOT / "workflow/plugins")}
    subprocess.run(words, cwd=ROOT, env=os.environ | own, check=True)


def costs(dataset: str) -> pl.DataFrame:
    """Return the server's CPU time of an echo by server, the median over trials, in us."""
    points = pl.read_parquet(ROOT / f"data/{dataset}/c10k/points.parquet")
    sound = points.filter(~pl.col("client_limited"), pl.col("replies") > 0)
    cost_us = pl.col("server_cpu_ns") / pl.col("replies") / 1000
    return sound.group_by("server").agg(cost_us.median().alias(dataset), trials=pl.len())


def show(paces: list[pl.DataFrame]) -> None:
    """Print the costs at both paces, and which pairs of servers change their order."""
    one, other = PACES_S
    both = paces[0].join(paces[1].drop("trials"), on="server").sort(one)
    with pl.Config(tbl_rows=-1, tbl_hide_dataframe_shape=True):
        print(both.with_columns(ratio=pl.col(other) / pl.col(one)))
    pairs = list(itertools.combinations(both.select("server", one, other).rows(), 2))
    turned = [(a[0], b[0]) for a, b in pairs if (a[1] < b[1]) != (a[2] < b[2])]
    print(f"{len(turned)} of {len(pairs)} pairs change their order: {turned}")


if __name__ == "__main__":
    main()
