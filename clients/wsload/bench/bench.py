#!/usr/bin/env python3
"""Measure wsload against its bars, beside tcpkali, k6, tsung and an earlier wsload.

Each has a null server of its own. Every item runs once in each round, so that a machine's drift
falls on all of them; a ratio is taken within a round. Results are medians over the rounds, with
the smallest and the largest.
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
from functools import partial
from pathlib import Path

import polars as pl

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
# A process that may open 20,000 files, as on the smallest machine foreseen, holds this many.
HELD_PER_PROCESS = 16_700
ON_CPU = [("taskset", "--cpu-list", cpu) for cpu in "01"]
RATES_RPS = [50_000, 200_000, 400_000, 800_000]
# The echo of a message of wsload's own size, with the head of its frame.
ECHO_BYTES = 35


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
    earlier: Path | None
    tcpkali: str | None
    k6: str | None
    tsung: str | None
    # What the commands of server and clients begin with: the CPU that they are bound to.
    server_cpu: tuple[str, ...] = ()
    client_cpu: tuple[str, ...] = ()


@contextmanager
def null_server(tools: Tools, port: int = 0):
    """A running null server; gives its address."""
    command = [*tools.server_cpu, tools.ws_null, f"127.0.0.1:{port}"]
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


def wsload(tools: Tools, scratch: Path, program: Path, *arguments: str) -> dict:
    """One run of wsload against a null server: its summary and CPU time."""
    run = Path(tempfile.mkdtemp(dir=scratch))
    with null_server(tools) as address:
        command = [program, f"ws://{address}/", "-q", "-o", run / "records", *arguments]
        cpu_s, _ = spent([*tools.client_cpu, *command], run / "log")
    summary = json.loads((run / "records" / "summary.json").read_text())
    return summary | {"cpu_s": cpu_s}


def wsload_throughput(
    tools: Tools, scratch: Path, program: Path, size: Size, rate_rps: int, more: tuple[str, ...]
) -> dict:
    """Echoes a client CPU-second, and latencies, at 64 connections and an offered rate.

    `p99_us` is of the latency, from the intended send; `service_p99_us` from the actual one.
    """
    interval = f"{64_000_000 // rate_rps}us"
    arguments = ["-n", "64", "-i", interval, "-d", f"{size.duration_s}s", *more]
    summary = wsload(tools, scratch, program, *arguments)
    return {
        "echoes_per_cpu_s": summary["messages"]["echoed_count"] / summary["cpu_s"],
        "echoes_rps": summary["messages"]["echoed_per_s"],
        "p50_us": summary["latency"]["p50_us"],
        "p99_us": summary["latency"]["p99_us"],
        "service_p99_us": summary["service"]["p99_us"],
        "lost": not_echoed(summary),
    }


def not_echoed(summary: dict) -> int:
    """How many messages were lost, not sent or answered wrongly."""
    messages = summary["messages"]
    return messages["intended_count"] - messages["echoed_count"] + messages["mismatched_count"]


def wsload_c10k(tools: Tools, scratch: Path, program: Path, size: Size) -> dict:
    """Memory and latency with one message a second on each of many connections."""
    count = str(size.connections)
    duration = f"{2 * size.duration_s}s"
    load = ["-n", count, "-r", "2000", "-i", "1s", "-d", duration]
    summary = wsload(tools, scratch, program, *load)
    return {
        "lost": not_echoed(summary),
        "rss_bytes_per_connection": summary["client"]["resident_peak_bytes"] / size.connections,
        "p50_us": summary["latency"]["p50_us"],
        "p99_us": summary["latency"]["p99_us"],
        "lag_p99_us": summary["client"]["lag"]["p99_us"],
        "echoes_per_cpu_s": summary["messages"]["echoed_count"] / summary["cpu_s"],
    }


def tcpkali_throughput(tools: Tools, scratch: Path, size: Size, rate_rps: int) -> dict:
    """Echoes a client CPU-second, and latencies, at 64 connections and an offered rate.

    It counts a latency from the actual send, and compares no echo but for the marker in it.
    """
    marker = "x" * (ECHO_BYTES - 2)
    words = ["--ws", "--workers=1", "--connections=64", "--connect-rate=1000", "--nagle=off"]
    words += [f"--message={marker}", f"--message-rate={rate_rps / 64}", f"-T{size.duration_s}s"]
    words += [f"--latency-marker={marker}", "--latency-percentiles=50,99"]
    log = Path(tempfile.mkdtemp(dir=scratch)) / "log"
    with null_server(tools) as address:
        cpu_s, _ = spent([*tools.client_cpu, tools.tcpkali, *words, address], log)
    text = log.read_text()
    received = re.search(r"^Total data received:.*\((\d+) bytes\)", text, re.MULTILINE)
    latency = re.search(r"^Message latency at percentiles: ([\d.]+)/([\d.]+)", text, re.MULTILINE)
    if not received or not latency:
        sys.exit(f"bench: tcpkali's report has no bytes received or no latency:\n{text[-2000:]}")
    echoes = int(received[1]) / ECHO_BYTES
    return {
        "echoes_per_cpu_s": echoes / cpu_s,
        "echoes_rps": echoes / size.duration_s,
        "p50_us": 1000 * float(latency[1]),
        "p99_us": 1000 * float(latency[2]),
        "service_p99_us": 1000 * float(latency[2]),
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


def items(tools: Tools, size: Size, paces: list[str]) -> dict:
    """What to measure, by name: functions of the scratch directory."""
    found = {}
    variants = {"wsload": (tools.wsload, ())}
    variants |= {f"wsload {words}": (tools.wsload, tuple(words.split())) for words in paces}
    if tools.earlier:
        variants["earlier wsload"] = (tools.earlier, ())
    for rate_rps in RATES_RPS:
        load = f"64 connections, {rate_rps} messages/s offered"
        for name, (program, more) in variants.items():
            found[f"{name}, {load}"] = partial(
                wsload_throughput,
                tools, program=program, size=size, rate_rps=rate_rps, more=more,
            )  # fmt: skip
        if tools.tcpkali:
            found[f"tcpkali, {load}"] = partial(
                tcpkali_throughput, tools, size=size, rate_rps=rate_rps
            )
    for name, (program, more) in variants.items():
        if not more:
            found[f"{name}, {size.connections} connections, 1 message/s each"] = partial(
                wsload_c10k, tools, program=program, size=size
            )
    if tools.k6:
        found["k6, 64 connections, closed loop"] = partial(k6_throughput, tools, size=size)
        found[f"k6, {size.connections} connections, 1 message/s each"] = partial(
            k6_c10k, tools, size=size
        )
    if tools.tsung:
        found["tsung, 64 connections, closed loop"] = partial(tsung_throughput, tools, size=size)
        found[f"tsung, {size.connections} connections, 1 message/s each"] = partial(
            tsung_c10k, tools, size=size
        )
    found[f"wsload, {size.held} connections held"] = partial(held, tools, size=size)
    return found


def ours(peer: str, items: list[str]) -> str | None:
    """The item of wsload with which a peer's is compared.

    That of the same load, or else, a closed loop having no rate, the one of as many connections at
    the highest rate.
    """
    _, load = peer.split(", ", 1)
    connections, *_ = load.split(", ")
    alike = [item for item in items if item.startswith(f"wsload, {connections}")]
    return f"wsload, {load}" if f"wsload, {load}" in items else next(reversed(alike), None)


def show(rounds: list[dict]) -> None:
    """Print the median, smallest and largest of every figure, and the ratios to the peers.

    A quantile that lies among lost messages is none, and then its median is not told.
    """
    items = list(rounds[0])
    for item in items:
        print(item)
        for figure in rounds[0][item]:
            values = [found[item][figure] for found in rounds]
            if None in values:
                print(f"  {figure:28} among the lost")
                continue
            middle = statistics.median(values)
            print(f"  {figure:28} {middle:14,.0f}  ({min(values):,.0f} to {max(values):,.0f})")
    for figure in ["echoes_per_cpu_s", "rss_bytes_per_connection", "p50_us", "p99_us"]:
        for peer in items:
            our = ours(peer, items)
            pairs = [(found[our].get(figure), found[peer].get(figure)) for found in rounds if our]
            if our == peer or not pairs or not all(all(pair) for pair in pairs):
                continue
            each = [our_value / peer_value for our_value, peer_value in pairs]
            spread = f"({min(each):.3g} to {max(each):.3g})"
            print(f"{figure}: {our} / {peer} = {statistics.median(each):.3g} {spread}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one small round: does it work?")
    parser.add_argument("--rounds", type=int, help="instead of the usual number")
    parser.add_argument("--programs", type=Path, default=REPOSITORY / "build/servers/ws-null/bin")
    parser.add_argument("--earlier", type=Path, help="another build of wsload, to compare with")
    parser.add_argument(
        "--pace",
        action="append",
        default=[],
        help="also wsload with these words, such as '--step 1ms --hold 2ms'",
    )
    parser.add_argument(
        "--bind", action="store_true", help="server on CPU 0, client on CPU 1; not what is held"
    )
    parser.add_argument("--tcpkali", default=shutil.which("tcpkali"), help="if not on the PATH")
    parser.add_argument("--k6", default=shutil.which("k6"), help="the k6 program, if not on PATH")
    parser.add_argument("--tsung", default=shutil.which("tsung"), help="tsung, if not on PATH")
    parser.add_argument("--only", default="", help="items whose name contains this")
    parser.add_argument("--json", type=Path, help="also write every round's figures here")
    arguments = parser.parse_args()
    programs = [arguments.programs / name for name in ["wsload", "ws-null"]]
    for program in [*programs, *([arguments.earlier] if arguments.earlier else [])]:
        if not program.exists():
            sys.exit(f"bench: no {program}: build it with cargo build --release (see README.md)")
    tools = Tools(
        *programs,
        earlier=arguments.earlier,
        tcpkali=arguments.tcpkali,
        k6=arguments.k6,
        tsung=arguments.tsung,
        **({"server_cpu": ON_CPU[0], "client_cpu": ON_CPU[1]} if arguments.bind else {}),
    )
    for name in ["tcpkali", "k6", "tsung"]:
        path = getattr(tools, name)
        if not path:
            print(f"{name} is not installed: measured without it", file=sys.stderr)
    size = SHORT if arguments.short else FULL
    size = replace(size, rounds=arguments.rounds or size.rounds)
    rounds = []
    for number in range(size.rounds):
        found = {}
        for item, measure in items(tools, size, arguments.pace).items():
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
