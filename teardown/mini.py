"""Make tests/data/miniature anew from data/reference: python teardown/mini.py (from the root).

Removed once the reference is complete and the miniature is committed.
"""

import shutil
import sys
from pathlib import Path

sys.path.insert(0, ".")
import polars as pl

from deathmatch.data import archive, tables
from deathmatch.plan import files

OUT = Path("tests/data/miniature")
ROUNDS = 3
NODES = ["node", "node-0.8", "node-0.10", "node-4", "node-8", "node-12", "node-16", "node-20"]
TORNADOS = [
    "tornado",
    "tornado-0.2",
    "tornado-1",
    "tornado-2.4",
    "tornado-2.4-pypy",
    "tornado-3.2",
    "tornado-4.5",
    "tornado-5.1",
    "tornado-5.1-python2",
]
TAKEN = {
    "accept-queue": ["acceptors", "node-accept", "null"],
    "backlog": ["null", "tornado", "tornado-1", "yucan", "yucan-otp29"],
    "c10k": [
        "erlang-cowboy",
        "erlang-cowboy-otp29",
        "gevent-websocket",
        "node-ws",
        "perl-ev-ws",
        "pypy-tornado",
        "tornado-ws",
        "twisted-ws",
        "webbit",
        "ws-null",
    ],
    "dynamic": [
        "cowboy",
        "cowboy-otp29",
        "lookups",
        "lookups-otp23",
        "mochiweb",
        "mochiweb-otp29",
        "node",
        "node-0.8",
        "null",
        "tornado",
        "tornado-1",
    ],
    "history": [*NODES, *TORNADOS, "null"],
    "overhead": ["eventlet-echo", "eventlet-wsgi", "eventlet-wsgi-webob", "otp-echo", "otp-http"],
    "readiness": ["c-readiness", "nginx", "null", "perl-ev", "tornado", "tornado-1"],
    "select-overload": ["null", "tornado", "tornado-0.2", "tornado-1", "yucan"],
    "single-thread": [
        "cherrypy",
        "go",
        "null",
        "tornado",
        "tornado-0.2",
        "tornado-1",
        "yaws",
        "yucan",
        "yucan-nojit",
        "yucan-otp23",
        "yucan-otp29",
        "yucan-passive",
    ],
    "static": ["inets", "mochiweb", "mochiweb-poll", "nginx", "null", "yaws", "yaws-poll"],
    "storage": ["otp-store", "python-store"],
}
# The variants whose raw logs are kept: what the paths of their trials begin with.
RAW = {
    "backlog": ["null/backlog=128,schedulers=one,somaxconn=128/"],
    "c10k": [
        "ws-null/schedulers=one,backlog=4096,environment=unthrottled,opening=128,run=planned/"
    ],
    "overhead": ["otp-echo/layer=echo,schedulers=one,"],
    "readiness": [
        f"c-readiness/readiness={way},idle_connections=500," for way in ("epoll", "poll")
    ],
    "static": ["null/"],
    "storage": [""],
}


def main() -> None:
    for experiment, servers in TAKEN.items():
        folder = OUT / experiment
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for table in files.dataset("reference").tables(experiment):
            frame = tables.read("reference", experiment, table)
            last = pl.when(pl.lit(experiment == "single-thread") & (pl.col("server") == "go")).then(
                2
            )
            kept = frame.filter(
                pl.col("server").is_in(servers), pl.col("n") <= last.otherwise(ROUNDS)
            )
            tables.write(kept, experiment, table, folder)
            if table == "trials":
                print(experiment, len(kept), kept["n"].max())
        if experiment in RAW:
            pack(experiment, folder)
    for old in ("scale-out", "select-crash"):
        shutil.rmtree(OUT / old, ignore_errors=True)


def pack(experiment: str, folder: Path) -> None:
    held = Path("data/reference") / experiment
    trials = [
        path.parent
        for path in sorted(held.glob("*/*/*/trial.json"))
        if int(path.parent.name) <= ROUNDS
        and any(str(path.relative_to(held)).startswith(begin) for begin in RAW[experiment])
    ]
    print("  raw:", len(trials))
    archive.write(folder / archive.NAME, held, trials)


main()
