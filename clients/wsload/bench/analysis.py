#!/usr/bin/env python3
"""Measure the analysis of a full dataset's messages: time and memory, on synthetic records.

Writes 20 runs of 10,000 connections × 300 s, 60 million messages, as wsload's own Parquet (some
250 MB), then reads them in a process of its own: mean, σ, median, 95th, 99th and 99.9th percentile
of latency and service time of every run. Run with the study's Python: ./shell python
clients/wsload/bench/analysis.py
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl


def write(folder: Path, runs: int, connections: int, duration_s: int) -> None:
    """Write `runs` runs' messages: log-normal latencies, one in 10,000 lost."""
    due = connections * duration_s
    for run in range(runs):
        random = np.random.default_rng(run)
        intended_us = np.sort(random.integers(0, duration_s * 1_000_000, due))
        sent_us = intended_us + random.integers(0, 50, due)
        took_us = random.lognormal(6 + run / 4, 1, due).astype(np.int64)
        frame = pl.DataFrame(
            {
                "connection": random.integers(0, connections, due, dtype=np.int32),
                "sequence": (intended_us // 1_000_000).astype(np.int32),
                "intended_us": intended_us,
                "sent_us": sent_us,
                "received_us": sent_us + took_us,
            }
        )
        lost = pl.Series("lost", random.random(due) < 1e-4)
        frame = frame.with_columns(lost).with_columns(
            pl.when(~pl.col("lost")).then("received_us").alias("received_us")
        )
        frame = frame.drop("lost")
        messages = folder / f"run-{run:02}" / "messages"
        messages.mkdir(parents=True)
        frame.write_parquet(messages / "0.parquet", compression="lz4")


def analyse(folder: Path) -> pl.DataFrame:
    """Return the statistics of each run, one at a time, so that memory holds but one."""
    found = []
    for run in sorted(folder.iterdir()):
        times = pl.scan_parquet(run / "messages" / "*.parquet")
        parts = []
        for name, begin in (("latency", "intended_us"), ("service_time", "sent_us")):
            took = (pl.col("received_us") - pl.col(begin)).cast(pl.Float32)
            parts += [took.mean().alias(f"{name}_mean"), took.std().alias(f"{name}_stddev")]
            # A lost message took longer than any.
            late = took.fill_null(float("inf"))
            parts += [
                late.quantile(q, "higher").alias(f"{name}_p{q * 100:g}")
                for q in (0.5, 0.95, 0.99, 0.999)
            ]
        found.append(times.select(parts).collect().with_columns(run=pl.lit(run.name)))
    return pl.concat(found)


def main() -> int:
    """Write, analyse, tell; exit 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--duration", type=int, default=300, help="seconds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--analyse", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.analyse:
        began = time.monotonic()
        analyse(given.analyse)
        took_s = time.monotonic() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"took_s": took_s, "peak_bytes": peak}))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write(folder, given.runs, given.connections, given.duration)
        size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
        rounds = []
        for _ in range(given.rounds):
            words = [sys.executable, __file__, "--analyse", folder]
            rounds.append(json.loads(subprocess.run(words, capture_output=True, check=True).stdout))
    best, peak = min(r["took_s"] for r in rounds), max(r["peak_bytes"] for r in rounds)
    messages = given.runs * given.connections * given.duration
    print(f"{messages:,} messages in {size / 1e6:.0f} MB: {best:.2f} s, {peak / 1e9:.2f} GB")
    return 0 if best < 3 and peak < 2e9 else 1


if __name__ == "__main__":
    sys.exit(main())
