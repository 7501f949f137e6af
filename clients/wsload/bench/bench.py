#!/usr/bin/env python3
"""Measure wsload against its bars, beside k6 and tsung, each against a fresh null server.

Every item runs once in each round, so that a machine's drift falls on all of them; a ratio is taken
within a round. Results are medians over the rounds, with the smallest and the largest.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
# A process that may open 20,000 files, as on the smallest machine foreseen, holds this many.
HELD_PER_PROCESS = 16_700


@dataclass(frozen=True)
class Size:
    """How much to measure."""

    rounds: int
    duration_s: int
    connections: int
    held: int


FULL = Size(rounds=5, duration_s=30, connections=10_000, held=100_000)
SHORT = Size(rounds=1, duration_s=5, connections=2_000, held=20_000)


@dataclass(frozen=True)
class Tools:
    """Where the programs are; a peer that is not installed is None."""

    wsload: Path
    ws_null: Path
    k6: str | None
    tsung: str | None


@contextmanager
def null_server(tools: Tools, port: int = 0):
    """A running null server; gives its address."""
    command = [tools.ws_null, f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield server.stdout.readline().split()[-1]
        finally:
            server.kill()


def spent(command: list, log: Path, **environment: str) -> tuple[float, int]:
    """CPU time in s and peak memory in bytes of a command and its children; exits if it fails.

    The kernel counts this Python process itself, some 60 MB, into the peak: a peer needs more.
    """
    with log.open("w") as out:
        child = subprocess.Popen(
            [str(word) for word in command], stdout=out, stderr=out, env=os.environ | environment
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"bench: {command[0]} ended with {child.returncode}:\n{log.read_text()[-2000:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def wsload(tools: Tools, scratch: Path, *arguments: str) -> dict:
    """One run of wsload against a null server: its summary and CPU time."""
    run = Path(tempfile.mkdtemp(dir=scratch))
    with null_server(tools) as address:
        command = [tools.wsload, f"ws://{address}/", "-q", "-o", run / "records", *arguments]
        cpu_s, _ = spent(command, run / "log")
    summary = json.loads((run / "records" / "summary.json").read_text())
    return summary | {"cpu_s": cpu_s}


def wsload_throughput(tools: Tools, scratch: Path, size: Size, rate_rps: int) -> dict:
    """Echoes a client CPU-second at 64 connections and an offered rate."""
    interval = f"{64_000_000 // rate_rps}us"
    arguments = ["-n", "64", "-i", interval, "-d", f"{size.duration_s}s"]
    summary = wsload(tools, scratch, *arguments)
    return {
        "echoes_per_cpu_s": summary["messages"]["echoed_count"] / summary["cpu_s"],
        "echoes_rps": summary["messages"]["echoed_per_s"],
    }


def wsload_c10k(tools: Tools, scratch: Path, size: Size) -> dict:
    """Memory and latency with one message a second on each of many connections."""
    count = str(size.connections)
    duration = f"{2 * size.duration_s}s"
    summary = wsload(tools, scratch, "-n", count, "-r", "2000", "-i", "1s", "-d", duration)
    return {
        "rss_bytes_per_connection": summary["client"]["resident_peak_bytes"] / size.connections,
        "p50_us": summary["latency"]["p50_us"],
        "p99_us": summary["latency"]["p99_us"],
        "lag_p99_us": summary["client"]["lag"]["p99_us"],
        "echoes_per_cpu_s": summary["messages"]["echoed_count"] / summary["cpu_s"],
    }


def k6(tools: Tools, scratch: Path, **settings: int) -> dict:
    """One run of k6 against a null server: its echoes, latencies, CPU time and peak memory."""
    run = Path(tempfile.mkdtemp(dir=scratch))
    with null_server(tools) as address:
        environment = {name.upper(): str(value) for name, value in settings.items()}
        environment |= {"URL": f"ws://{address}/", "SUMMARY": str(run / "summary.json")}
        command = [tools.k6, "run", "--no-usage-report", "--quiet", HERE / "k6.js"]
        cpu_s, rss_bytes = spent(command, run / "log", **environment)
    metrics = json.loads((run / "summary.json").read_text())
    return {
        "echoes_per_cpu_s": metrics["echoes"]["values"]["count"] / cpu_s,
        "p50_us": 1000 * metrics["latency_ms"]["values"]["p(50)"],
        "p99_us": 1000 * metrics["latency_ms"]["values"]["p(99)"],
        "rss_bytes": rss_bytes,
    }


def k6_throughput(tools: Tools, scratch: Path, size: Size) -> dict:
    """Echoes a CPU-second at 64 connections, ten in flight on each."""
    load = {"vus": 1, "sockets": 64, "interval_ms": 0, "window": 10}
    found = k6(tools, scratch, **load, duration_ms=1000 * size.duration_s)
    return {"echoes_per_cpu_s": found["echoes_per_cpu_s"]}


def k6_c10k(tools: Tools, scratch: Path, size: Size) -> dict:
    """Memory and latency with one message a second on each of many connections."""
    vus = 10
    load = {"vus": vus, "sockets": size.connections // vus, "interval_ms": 1000}
    found = k6(tools, scratch, **load, duration_ms=2000 * size.duration_s)
    found["rss_bytes_per_connection"] = found.pop("rss_bytes") / size.connections
    return found


def tsung(tools: Tools, scratch: Path, **settings: object) -> tuple[int, float, int]:
    """One run of tsung against a null server: its echoes, CPU time and peak memory."""
    run = Path(tempfile.mkdtemp(dir=scratch))
    dtd = Path(tools.tsung).resolve().parents[1] / "share/tsung/tsung-1.0.dtd"
    # A port mapper of its own: the one that Erlang would start outlives the run.
    mapper_port = "4399"
    with null_server(tools) as address, subprocess.Popen(["epmd", "-port", mapper_port]) as mapper:
        host, port = address.split(":")
        text = (HERE / "tsung.xml").read_text().format(host=host, port=port, dtd=dtd, **settings)
        (run / "tsung.xml").write_text(text)
        command = [tools.tsung, "-n", "-f", run / "tsung.xml", "-l", run / "logs", "start"]
        environment = {"HOME": str(run), "ERL_EPMD_PORT": mapper_port}
        cpu_s, rss_bytes = spent(command, run / "log", **environment)
        mapper.kill()
    log = next(run.glob("logs/*/tsung.log")).read_text()
    requests = re.findall(r"^stats: request (\d+)", log, re.MULTILINE)
    # Of each user's requests one upgrades and one closes.
    return sum(map(int, requests)) - 2 * settings["users"], cpu_s, rss_bytes


def tsung_throughput(tools: Tools, scratch: Path, size: Size) -> dict:
    """Echoes a CPU-second at 64 connections, one in flight on each."""
    users, messages = 64, 400 * size.duration_s
    load = {"users": users, "arrival_per_s": users, "messages": messages}
    echoes, cpu_s, _ = tsung(tools, scratch, duration_s=2, think="", **load)
    return {"echoes_per_cpu_s": echoes / cpu_s}


def tsung_c10k(tools: Tools, scratch: Path, size: Size) -> dict:
    """Memory with one message a second on each of many connections."""
    arrival_per_s = 1000
    load = {"users": size.connections, "arrival_per_s": arrival_per_s}
    opening_s = size.connections // arrival_per_s + 1
    think = '<thinktime value="1" random="false"/>'
    messages = opening_s + size.duration_s
    _, _, rss_bytes = tsung(
        tools, scratch, duration_s=opening_s, messages=messages, think=think, **load
    )
    return {"rss_bytes_per_connection": rss_bytes / size.connections}


def held(tools: Tools, scratch: Path, size: Size) -> dict:
    """Many connections held at once, by several clients on several servers, merged by events."""
    run = Path(tempfile.mkdtemp(dir=scratch))
    clients = -(-size.held // HELD_PER_PROCESS)
    each = -(-size.held // clients)
    start = time.time() + 3
    duration_s = each / 1000 + size.duration_s
    processes = []
    with null_servers(tools, clients) as addresses:
        for index, address in enumerate(addresses):
            command = [tools.wsload, f"ws://{address}/", "-q", "-o", run / str(index)]
            command += ["-n", str(each), "-r", "1000", "-i", "10s", "-d", f"{duration_s:.0f}s"]
            command += ["--handshake-timeout", "30s"]
            # A source address of its own for each: one has 28,232 ports.
            command += ["--source", f"127.0.1.{index + 1}", "--start-at", f"{start:.3f}"]
            command += ["--first-connection", str(index * each)]
            processes.append(subprocess.Popen([str(w) for w in command], stdout=subprocess.DEVNULL))
        failed = [process.args for process in processes if process.wait()]
    if failed:
        sys.exit(f"bench: these clients failed: {failed}")
    connections = pl.scan_parquet(run / "*/connections.parquet").collect()
    messages = pl.scan_parquet(run / "*/messages/*.parquet")
    opened = connections.filter(pl.col("upgraded_us").is_not_null())
    at_once = opened["closed_us"].min() > opened["upgraded_us"].max()
    latency_us = pl.col("received_us") - pl.col("intended_us")
    found = messages.select(
        latency_us.quantile(0.99).alias("p99_us"),
        pl.col("received_us").is_null().sum().alias("lost"),
    ).collect()
    summaries = [json.loads((run / str(n) / "summary.json").read_text()) for n in range(clients)]
    memory = sum(summary["client"]["resident_peak_bytes"] for summary in summaries)
    return {
        "held_at_once": opened.height if at_once else 0,
        "distinct": opened["connection"].n_unique(),
        "lost": found["lost"].item(),
        "p99_us": found["p99_us"].item(),
        "rss_bytes_per_connection": memory / max(1, opened.height),
    }


@contextmanager
def null_servers(tools: Tools, count: int):
    """Several running null servers; gives their addresses."""
    if count == 0:
        yield []
        return
    with null_server(tools) as address, null_servers(tools, count - 1) as others:
        yield [address, *others]


def items(tools: Tools, size: Size) -> dict:
    """What to measure, by name: functions of the scratch directory."""
    found = {}
    for rate_rps in [50_000, 200_000, 400_000]:
        found[f"wsload, 64 connections, {rate_rps} messages/s offered"] = (
            lambda scratch, rate_rps=rate_rps: wsload_throughput(tools, scratch, size, rate_rps)
        )
    found[f"wsload, {size.connections} connections, 1 message/s each"] = lambda scratch: (
        wsload_c10k(tools, scratch, size)
    )
    if tools.k6:
        found["k6, 64 connections, closed loop"] = lambda scratch: k6_throughput(
            tools, scratch, size
        )
        found[f"k6, {size.connections} connections, 1 message/s each"] = lambda scratch: k6_c10k(
            tools, scratch, size
        )
    if tools.tsung:
        found["tsung, 64 connections, closed loop"] = lambda scratch: tsung_throughput(
            tools, scratch, size
        )
        found[f"tsung, {size.connections} connections, 1 message/s each"] = lambda scratch: (
            tsung_c10k(tools, scratch, size)
        )
    found[f"wsload, {size.held} connections held"] = lambda scratch: held(tools, scratch, size)
    return found


def show(rounds: list[dict]) -> None:
    """Print the median, smallest and largest of every figure, and the ratios to the peers."""
    for item in rounds[0]:
        print(item)
        for figure in rounds[0][item]:
            values = [found[item][figure] for found in rounds]
            middle = statistics.median(values)
            print(f"  {figure:28} {middle:14,.0f}  ({min(values):,.0f} to {max(values):,.0f})")
    for figure in ["echoes_per_cpu_s", "rss_bytes_per_connection", "p99_us"]:
        for load in ["64 connections", "1 message/s each"]:
            ours = [item for item in rounds[0] if item.startswith("wsload") and load in item]
            peers = [item for item in rounds[0] if not item.startswith("wsload") and load in item]
            pairs = [
                (peer, our)
                for peer in peers
                for our in ours[-1:]
                if figure in rounds[0][peer] and figure in rounds[0][our]
            ]
            for peer, our in pairs:
                ratio = statistics.median(
                    found[our][figure] / max(found[peer][figure], 1e-9) for found in rounds
                )
                print(f"{figure}: {our} / {peer} = {ratio:.3g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one small round: does it work?")
    parser.add_argument("--rounds", type=int, help="instead of the usual number")
    parser.add_argument("--programs", type=Path, default=REPOSITORY / "build/servers/ws-null/bin")
    parser.add_argument("--k6", default=shutil.which("k6"), help="the k6 program, if not on PATH")
    parser.add_argument("--tsung", default=shutil.which("tsung"), help="tsung, if not on PATH")
    parser.add_argument("--only", default="", help="items whose name contains this")
    parser.add_argument("--json", type=Path, help="also write every round's figures here")
    arguments = parser.parse_args()
    programs = [arguments.programs / name for name in ["wsload", "ws-null"]]
    for program in programs:
        if not program.exists():
            sys.exit(f"bench: no {program}: build it with cargo build --release (see README.md)")
    tools = Tools(*programs, k6=arguments.k6, tsung=arguments.tsung)
    for name, path in [("k6", tools.k6), ("tsung", tools.tsung)]:
        if not path:
            print(f"{name} is not installed: measured without it", file=sys.stderr)
    size = SHORT if arguments.short else FULL
    size = replace(size, rounds=arguments.rounds or size.rounds)
    rounds = []
    for number in range(size.rounds):
        found = {}
        for item, measure in items(tools, size).items():
            if arguments.only not in item:
                continue
            print(f"round {number + 1} of {size.rounds}: {item}", file=sys.stderr)
            with tempfile.TemporaryDirectory(prefix="wsload-bench-") as scratch:
                found[item] = measure(Path(scratch))
        rounds.append(found)
    load = os.getloadavg()
    print(
        f"{size.rounds} round(s) on {os.cpu_count()} cores; load average {load[0]:.1f} at the end"
    )
    show(rounds)
    if arguments.json:
        arguments.json.write_text(json.dumps(rounds, indent=1) + "\n")


if __name__ == "__main__":
    main()
