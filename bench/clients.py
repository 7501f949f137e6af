#!/usr/bin/env python3
"""Compare the CPU time and the lateness of the load generators.

    ./shell python bench/clients.py [--realtime] [--only http|websocket|comparison]

New connections: httperf and roundtrip in its place offer the same rates to the null server, and as
much as they can. Comparison: both, with and without comparing every answer with the expected body,
on connections that stay open and ask again at once, so that httperf has no time to poll. WebSocket:
wsload at its own pace and at others, to ws-null. Server and client have a CPU each. Every item runs
once in each round; ratios are taken within a round, and medians over the rounds are shown. CPU
times depend on the machine; the goals are ratios and times. With --realtime, as root, server and
client have precedence over other processes (SCHED_RR). The exit status is 1 if a goal is missed.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deathmatch.builds import clients  # noqa: E402
from deathmatch.load import histogram, registry  # noqa: E402
from deathmatch.load.generator import BODY, LoadGenerator  # noqa: E402

SERVER_CPU, CLIENT_CPU = "0", "1"
LOAD = {"uri": "/", "requests_per_connection": 1, "timeout_s": 1}
PACED_RPS = (3_000, 5_000, 10_000)
# roundtrip is saturated by too high a rate on so many connections. httperf would only be late: its
# CPU time per connection is lowest at a rate that it can just offer.
SATURATED_RPS = {"httperf": 20_000, "roundtrip": 60_000}
SATURATED_CONNECTIONS = "--connections=1000"
# The goals of the light client, from GOAL_FROM_RPS on.
GOAL_FROM_RPS, MOST_CPU_RATIO, MOST_LAG_US = 5_000, 1.5, 1_000
# The goal for comparing every answer; if it is missed, one in twenty is compared.
MOST_COMPARISON_RATIO = 1.02
BUSY_CONNECTIONS, CALLS_CPS = 16, 4_000
# wsload: messages a second on 64 connections and on 10,000; the paces to compare its own with, a
# former one and one in steps; and the goals. The p99 is from the send: tcpkali's is 500 us.
BUSY_RPS, BUSY_PACE, LEAST_BUSY, BUSY_P99_US = 200_000, "--step 100us --hold 500us", 550_000, 500
MANY, MANY_PACE, MANY_GAIN = 10_000, "--step 1ms", 2.5
Row = dict[str, float]


def main() -> int:
    """Measure, show, and return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--realtime", action="store_true", help="go before other processes; root")
    parser.add_argument("--only", choices=["http", "websocket", "comparison"])
    parser.add_argument("--busy-pace", default=BUSY_PACE, help=f"default: {BUSY_PACE}")
    parser.add_argument("--many-pace", default=MANY_PACE, help=f"default: {MANY_PACE}")
    given = parser.parse_args()
    if (os.cpu_count() or 1) < 2:
        sys.exit("bench/clients.py: server and client need a CPU each, this machine has one")
    bench = Bench(["chrt", "--rr", "10"] if given.realtime else [], given.seconds)
    missed = []
    if given.only in (None, "comparison"):
        missed += comparison(bench, given.rounds)
    if given.only in (None, "http"):
        missed += http(bench, given.rounds)
    if given.only in (None, "websocket"):
        build_wsload()
        missed += websocket(bench, given.rounds, given.busy_pace, given.many_pace)
    for goal in missed:
        print(f"missed: {goal}")
    return 1 if missed else 0


def build_wsload() -> None:
    """Build wsload and its server, unless they are up to date, and put them on PATH."""
    words = [sys.executable, "-m", "deathmatch", "build", "ws-null"]
    subprocess.run(words, cwd=ROOT, check=True)
    os.environ["PATH"] = f"{clients.built_at('wsload').parent}:{os.environ['PATH']}"


class Bench:
    """How programs are run: the beginning of their commands, and the duration of the load."""

    def __init__(self, before: list[str], duration_s: float):
        """Keep both."""
        self.before, self.duration_s = before, duration_s

    def words(self, cpu: str, command: list[str]) -> list[str]:
        """Return a command bound to a CPU."""
        return [*self.before, "taskset", "--cpu-list", cpu, *command]

    @contextmanager
    def server(self, command: list[str]) -> Iterator[subprocess.Popen]:
        """Run a server on its CPU, and end it."""
        words = self.words(SERVER_CPU, command)
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def client(self, command: list[str], folder: Path) -> tuple[str, float]:
        """Run a client on its CPU to its end; return what it printed, and its CPU time in s."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            self.words(CLIENT_CPU, command), capture_output=True, text=True, cwd=folder
        )
        if done.returncode:
            sys.exit(f"bench/clients.py: {command[0]} ended with {done.returncode}: {done.stderr}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return done.stdout, sum(
            getattr(after, mode) - getattr(before, mode) for mode in ("ru_utime", "ru_stime")
        )


def generators() -> dict[str, LoadGenerator]:
    """Return both clients of new connections."""
    return {
        "httperf": registry.generator("httperf"),
        "roundtrip": registry.generator("roundtrip", "httperf"),
    }


@contextmanager
def null_server(bench: Bench) -> Iterator[Path]:
    """Build and run the null server; yield a folder for what clients write."""
    with tempfile.TemporaryDirectory() as scratch:
        null = Path(scratch, "null-server")
        source = ROOT / "servers" / "null" / "null.c"
        subprocess.run(["cc", "-O2", "-pthread", "-o", null, source], check=True)
        with bench.server([str(null), "backlog", "127.0.0.1", "9731", "4096", "1"]):
            yield Path(scratch)


def comparison(bench: Bench, rounds: int) -> list[str]:
    """Measure the cost of comparing each answer; return the goals that were missed.

    Runs with and without the comparison alternate. Other work on the machine only adds to a CPU
    time, so that the lowest ones are compared.
    """
    made: dict[tuple[str, bool], list[float]] = {}
    with null_server(bench) as folder:
        for number in range(rounds):
            for name, generator in generators().items():
                for compared in (number % 2 == 0, number % 2 == 1):
                    load = LOAD | {"requests_per_connection": round(CALLS_CPS * bench.duration_s)}
                    load |= {BODY: "Hello, world"} if compared else {}
                    cpu_us = busy(bench, generator, load, folder)
                    made.setdefault((name, compared), []).append(cpu_us)
    print(f"\nCPU of an answer, {rounds} rounds")
    print(f"{'client':10}{'alone':>10}{'compared':>10}{'ratio':>8}{'ratios of rounds':>24}")
    missed = []
    for name in generators():
        alone, compared = made[name, False], made[name, True]
        ratio, each = min(compared) / min(alone), [a / b for a, b in zip(compared, alone)]
        print(f"{name:10}{min(alone):7.2f} us{min(compared):7.2f} us{ratio:8.3f}"
              f"{median(each):10.3f} [{min(each):.2f}, {max(each):.2f}]")  # fmt: skip
        if ratio > MOST_COMPARISON_RATIO:
            missed.append(f"{name}: {ratio:.3f} of {MOST_COMPARISON_RATIO} times the CPU")
    return missed


def busy(bench: Bench, generator: LoadGenerator, load: Mapping, folder: Path) -> float:
    """Return the CPU time of an answer, in us, of BUSY_CONNECTIONS that ask without a pause."""
    opening_s = 0.01
    rate_rps = round(BUSY_CONNECTIONS * load["requests_per_connection"] / opening_s)
    words = generator.command("127.0.0.1", 9731, load, rate_rps, opening_s)
    text, cpu_s = bench.client(words, folder)
    return 1e6 * cpu_s / generator.good(generator.parse((text,), opening_s))


def http(bench: Bench, rounds: int) -> list[str]:
    """Measure both clients of new connections; return the goals that were missed."""
    made: dict[tuple[str, int], list[Row]] = {}
    with null_server(bench) as folder:
        for _ in range(rounds):
            for name, generator in generators().items():
                for rate_rps in (*PACED_RPS, SATURATED_RPS[name]):
                    row = connections(bench, generator, rate_rps, folder)
                    made.setdefault((name, rate_rps), []).append(row)
    print(f"\nnew connections, the null server, {rounds} rounds of {bench.duration_s:g} s")
    print(f"{'client':10}{'offered':>9}{'answered':>9}{'CPU':>10}{'of saturated':>14}"
          f"{'p50':>9}{'p90':>9}{'p99':>9}{'lag p99':>9}")  # fmt: skip
    missed = []
    for (name, rate_rps), rows in made.items():
        full = made[name, SATURATED_RPS[name]]
        ratio = median(a["cpu_us"] / b["cpu_us"] for a, b in zip(rows, full))
        each = {key: median(row[key] for row in rows) for key in rows[0]}
        lag_us = each["lag_us"]
        times = "".join(f"{each[f'{name}_us']:9.0f}" for name in ("p50", "p90", "p99", "lag"))
        print(f"{name:10}{rate_rps:9}{each['answered']:9.0f}{each['cpu_us']:7.1f} us{ratio:14.2f}"
              f"{times}")  # fmt: skip
        if name == "roundtrip" and rate_rps in PACED_RPS:
            if lag_us > MOST_LAG_US:
                missed.append(f"{rate_rps} connections/s: opened {lag_us:.0f} us late (p99)")
            if rate_rps >= GOAL_FROM_RPS and ratio > MOST_CPU_RATIO:
                missed.append(f"{rate_rps} connections/s: {ratio:.2f} times the saturated CPU")
    print("CPU is of a connection; times in us, of a connection from its opening to its end; lag "
          "is how late it\nwas opened: httperf does not say, its number is the longest time "
          "between two looks at its sockets")  # fmt: skip
    return missed


def connections(bench: Bench, generator: LoadGenerator, rate_rps: int, folder: Path) -> Row:
    """Return the cost and the times of one client's connections at one rate."""
    duration_s = bench.duration_s
    words = generator.command("127.0.0.1", 9731, LOAD, rate_rps, duration_s)
    if rate_rps == SATURATED_RPS["roundtrip"]:
        words.append(SATURATED_CONNECTIONS)
    text, cpu_s = bench.client(words, folder)
    fields = generator.parse((text,), duration_s)
    times = generator.histogram((text,)).filter(pl.col("quantity") == "connection_time")
    p50_us, p90_us, p99_us = histogram.quantiles_us(times, [0.5, 0.9, 0.99])
    lag_us = fields["send_lag_p99_us"]
    return {
        "answered": fields["replies"], "cpu_us": 1e6 * cpu_s / max(1, fields["replies"]),
        "p50_us": p50_us, "p90_us": p90_us, "p99_us": p99_us,
        "lag_us": fields["look_interval_max_us"] if lag_us is None else lag_us,
    }  # fmt: skip


def websocket(bench: Bench, rounds: int, busy_pace: str, many_pace: str) -> list[str]:
    """Measure wsload at its own pace and at another one; return the goals that were missed."""
    made: dict[str, list[Row]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(rounds):
            for pace in ("", busy_pace):
                row = messages(bench, Path(scratch), 64, BUSY_RPS, bench.duration_s, pace)
                made.setdefault(f"64 connections {pace}", []).append(row)
            for pace in ("", many_pace):
                # The difference of a long and a short run leaves out the opening of connections.
                short, long = (
                    messages(bench, Path(scratch), MANY, MANY, length * bench.duration_s, pace)
                    for length in (2, 5)
                )
                cpu_s = long["echoes"] / long["per_cpu_s"] - short["echoes"] / short["per_cpu_s"]
                steady = long | {"per_cpu_s": (long["echoes"] - short["echoes"]) / cpu_s}
                made.setdefault(f"{MANY} connections {pace}", []).append(steady)
    print(f"\nWebSocket messages, ws-null, {rounds} rounds")
    print(f"{'':44}{'echoes/CPU-s':>13}{'gain':>7}{'p50':>7}{'p99':>7}{'p99 sent':>9}{'lag p99':>9}"
          f"{'step':>7}{'hold':>7}")  # fmt: skip
    gains = {}
    for name, rows in made.items():
        own = made[f"{name.partition(' ')[0]} connections "]
        each = {key: median(row[key] for row in rows) for key in rows[0]}
        gains[name] = median(a["per_cpu_s"] / b["per_cpu_s"] for a, b in zip(rows, own))
        print(f"{name:44}{each['per_cpu_s']:13.0f}{gains[name]:7.2f}{each['p50_us']:7.0f}"
              f"{each['p99_us']:7.0f}{each['service_p99_us']:9.0f}{each['lag_us']:9.0f}"
              f"{each['step_us']:7.0f}"
              f"{each['hold_us']:7.0f}")  # fmt: skip
    busy, many = "64 connections", f"{MANY} connections {many_pace}"
    own = made[f"{busy} "]
    echoes, p99_us = (median(row[key] for row in own) for key in ("per_cpu_s", "service_p99_us"))
    goals = [
        (echoes >= LEAST_BUSY, f"{busy}: {echoes:.0f} of {LEAST_BUSY} echoes a CPU-second"),
        (p99_us < BUSY_P99_US, f"{busy}: p99 from the send is {p99_us:.0f}, of {BUSY_P99_US} us"),
        (gains[many] >= MANY_GAIN, f"{many}: {gains[many]:.2f} of {MANY_GAIN} times the echoes"),
    ]
    return [what for reached, what in goals if not reached]


def messages(
    bench: Bench, scratch: Path, connections: int, rate_rps: int, duration_s: float, pace: str
) -> Row:
    """Return the cost and the times of wsload's messages at one rate and pace."""
    with bench.server(["ws-null", "127.0.0.1:0"]) as server:
        address = server.stdout.readline().split()[-1]
        words = [
            "wsload", f"ws://{address}/", "--quiet", f"--connections={connections}",
            f"--interval={1_000_000 * connections // rate_rps}us", "--size=16",
            f"--duration={round(1000 * duration_s)}ms", "--output=run", *pace.split(),
        ]  # fmt: skip
        text, cpu_s = bench.client(words, scratch)
    shutil.rmtree(scratch / "run")
    summary = json.loads(text)
    client = summary["client"]
    # A quantile is null if it falls among lost messages.
    lost = float("inf")
    return {
        "echoes": summary["messages"]["echoed_count"],
        "per_cpu_s": summary["messages"]["echoed_count"] / cpu_s,
        "p50_us": summary["latency"]["p50_us"] or lost,
        "p99_us": summary["latency"]["p99_us"] or lost,
        "service_p99_us": summary["service"]["p99_us"] or lost,
        "lag_us": client["lag"]["p99_us"], "step_us": client["step_us"],
        "hold_us": client["hold_us"],
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
