#!/usr/bin/env python3
"""Compare algorithms of TCP congestion control on the testbed, in one command: `bench/README.md`.

./shell python bench/congestion.py
"""

import argparse
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deathmatch.errors import UserError  # noqa: E402
from deathmatch.hosts import network_settings, sandbox  # noqa: E402
from deathmatch.instruments import instrument  # noqa: E402
from deathmatch.measure import client  # noqa: E402
from deathmatch.measure.context import Context  # noqa: E402
from deathmatch.plan import matrix  # noqa: E402

# One connection a request with a short answer; ten requests with answers of some kilobytes.
EXPERIMENTS = ("backlog", "static")
COLUMNS = ("replies/s", "response ms", "server CPU us/reply")


def measured(
    context: Context, algorithm: str, rate_rps: int, duration_s: float
) -> tuple[float, ...] | None:
    """Return COLUMNS at a rate under an algorithm; None if the kernel does not let one set it."""
    for host in context.bed.hosts:
        if network_settings.set_congestion_control(host, [algorithm]) != algorithm:
            return None
    # What the server does once, and connections of the algorithm before.
    client.warm_up(context)
    before_ns, report = instrument.cpu_ns(context), context.out / "report.txt"
    offered = client.offer(context, rate_rps, duration_s, report)
    spent_ns = instrument.cpu_ns(context) - before_ns
    fields = client.fields(context, offered, duration_s)
    if fields is None or not (good := context.generator.good(fields)):
        raise UserError("the load generator left no whole report", str(report), "run it again")
    response_ms = (fields["response_time_avg_us"] or 0) / 1000
    return fields["reply_rate_offered_window_rps"], response_ms, spent_ns / good / 1000


def compare(given: argparse.Namespace, experiment: str) -> None:
    """Print a line for each algorithm: medians over rounds, in an order that turns each round."""
    trial = next(
        trial for trial in matrix.possible(instrument.DATASET, [experiment])
        if trial.server.name == given.server
    )  # fmt: skip
    rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in given.algorithms}
    with tempfile.TemporaryDirectory() as out, instrument.serving(trial, Path(out)) as context:
        for number in range(given.rounds):
            turned = given.algorithms[:: -1 if number % 2 else 1]
            for algorithm in turned:
                row = measured(context, algorithm, given.rate, given.duration)
                if row is not None:
                    rows[algorithm].append(row)
    for algorithm, taken in rows.items():
        words = ", ".join(
            f"{name} {statistics.median(values):.4g} [{min(values):.4g}, {max(values):.4g}]"
            for name, values in zip(COLUMNS, zip(*taken))
        )
        print(f"{experiment}, {given.rate} req/s, {algorithm}: {words or 'cannot be set here'}")


def main() -> int:
    """Compare the algorithms named on the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithms", nargs="+", default=["reno", "bbr", "cubic"])
    parser.add_argument("--server", default="null", help="a server of both experiments")
    parser.add_argument("--rate", type=int, default=5000, help="requests per second")
    parser.add_argument("--duration", type=float, default=5, help="seconds at a rate")
    parser.add_argument("--rounds", type=int, default=6, help="how often each is measured")
    given = parser.parse_args()
    try:
        for experiment in EXPERIMENTS:
            instrument.built("bench/congestion.py", given.server, experiment)
        # Each testbed has a sandbox of its own.
        return max(sandbox.call(partial(compare, given, name)) for name in EXPERIMENTS)
    except UserError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
