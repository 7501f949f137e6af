#!/usr/bin/env python3
"""Measure the analysis of a full c10k dataset, on synthetic records.

    ./shell python bench/analysis.py

It writes 20 runs of 10,000 connections × 300 s, 60 million messages, in the columns of wsload's
Parquet files, and turns each into the histograms that a trial keeps. Then, in another process, it
computes the content of the tables from them: mean, σ and quantiles of every quantity of every run,
and the quantiles of every second. The limits, 3 s and 2 GB, hold for that second step.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deathmatch.load import histogram, wsload  # noqa: E402

MOST_S, MOST_BYTES = 3, 2_000_000_000


def write(records: Path, seed: int, connections: int, duration_s: int) -> None:
    """Write one run's messages: log-normal latencies, higher for each seed, one in 10,000 lost."""
    random, due = np.random.default_rng(seed), connections * duration_s
    intended_us = np.sort(random.integers(0, duration_s * 1_000_000, due))
    sent_us = intended_us + random.integers(0, 50, due)
    took_us = random.lognormal(6 + seed / 4, 0.7, due).astype(np.int64)
    frame = pl.DataFrame(
        {
            "connection": random.integers(0, connections, due, dtype=np.int32),
            "sequence": (intended_us // 1_000_000).astype(np.int32),
            "intended_us": intended_us,
            "sent_us": sent_us,
            "received_us": sent_us + took_us,
            "lost": random.random(due) < 1e-4,
        }
    )
    kept = pl.when(~pl.col("lost")).then("received_us").alias("received_us")
    (records / "messages").mkdir(parents=True)
    frame.with_columns(kept).drop("lost").write_parquet(records / "messages" / "0.parquet")


def analyse(folder: Path) -> int:
    """Compute the statistics of every run and its seconds; return the number of values."""
    numbers = 0
    for file in sorted(folder.glob("*.parquet")):
        if file.name.endswith(wsload.SHARES):
            continue
        report = wsload.GENERATOR.read(file.with_suffix(".txt"))
        for quantity in report.times["quantity"].unique():
            part = report.times.filter(pl.col("quantity") == quantity)
            numbers += len(histogram.statistics(part))
        numbers += wsload.GENERATOR.seconds(report).height
    return numbers


def used() -> dict:
    """Return this process's CPU time and its peak memory."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu_s": usage.ru_utime + usage.ru_stime, "peak_bytes": usage.ru_maxrss * 1024}


def main() -> int:
    """Write, condense, analyse and report; return 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--duration", type=int, default=300, help="seconds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--analyse", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.analyse:
        before, began = used()["cpu_s"], time.monotonic()
        analyse(given.analyse)
        found = used() | {"took_s": time.monotonic() - began}
        print(json.dumps(found | {"cpu_s": found["cpu_s"] - before}))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder, condensing_s, raw_bytes = Path(scratch), 0.0, 0
        for run in range(given.runs):
            log = folder / f"wsload-{run:02}.txt"
            write(log.with_suffix(""), run, given.connections, given.duration)
            raw_bytes += sum(f.stat().st_size for f in log.with_suffix("").rglob("*.parquet"))
            began = time.monotonic()
            wsload.GENERATOR.compact(log)
            condensing_s += time.monotonic() - began
        kept_bytes = sum(file.stat().st_size for file in folder.glob("*.parquet"))
        words = [sys.executable, __file__, "--analyse", folder]
        rounds = [
            json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
            for _ in range(given.rounds)
        ]
    messages = given.runs * given.connections * given.duration
    best = min(rounds, key=lambda one: one["took_s"])
    peak_bytes = max(one["peak_bytes"] for one in rounds)
    print(
        f"{messages:,} messages, {raw_bytes / 1e6:.0f} MB of records, {kept_bytes / 1e6:.0f} MB of "
        f"histograms, made in {condensing_s / given.runs:.1f} s a run\n"
        f"analysis: {best['took_s']:.2f} s ({best['cpu_s']:.2f} s of CPU), "
        f"{peak_bytes / 1e9:.2f} GB; load average {os.getloadavg()[0]:.0f}"
    )
    return 0 if best["took_s"] < MOST_S and peak_bytes < MOST_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
