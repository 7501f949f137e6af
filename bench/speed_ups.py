#!/usr/bin/env python3
"""Print what more CPUs gave each server of a dataset, with the guards: `bench/README.md`.

./shell python bench/speed_ups.py scaling
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deathmatch.analysis import speed_up  # noqa: E402
from deathmatch.analysis.judging import effect  # noqa: E402
from deathmatch.analysis.values import Values  # noqa: E402
from deathmatch.data import emulation, inventory, records, tidy  # noqa: E402
from deathmatch.errors import UserError  # noqa: E402
from deathmatch.plan.trial import OWN_TESTBED  # noqa: E402
from deathmatch.quantities.quantity import REPLY  # noqa: E402

# A server behind another one is compared with one process of itself alone.
ALONE = {"tornado-nginx": "tornado"}
PLANTED = "planted-lock"
# The error from which on the planted server's speed-up is called wrong.
WRONG = 0.1
# The share of the offered rate from which on a server answered it in full, and could do more.
IN_FULL = 0.99


@dataclass(frozen=True)
class Measured:
    """What one trial came to at its highest reply rate."""

    server: str
    configuration: str
    testbed: str
    schedulers: str
    n: int
    cpus: int
    replies_rps: float
    cost_ns: float
    left: float
    guards: str
    least_busy: float | None
    in_full: bool


def measured(file: Path) -> Measured | None:
    """Return what a trial came to; None if it has no answer."""
    record = records.read(file)
    rows = [row for row in tidy.tidy(file)["points"] if row.get(REPLY) and row.get("server_cpu_ns")]
    if not rows:
        return None
    best = max(rows, key=lambda row: row[REPLY])
    offered_rps = best["offered_rate_rps"]
    point = next(p for p in record["points"] if p["offered_rate_rps"] == offered_rps)
    factors, throttle = record["spec"]["factors"], record.get("throttle") or {}
    got, server_cpus = point["cpu"], record["cpus"]["server"]
    shared = {*server_cpus} & {*record["cpus"]["client"]}
    return Measured(
        record["server"], factors.get("configuration", ""),
        factors.get(OWN_TESTBED, record["testbed"]), factors["schedulers"], record["n"],
        throttle.get("emulated_cpus", len(server_cpus)), best[REPLY],
        best["server_cpu_ns"] / best["replies"],
        len(server_cpus) - min(len(shared), got["client_us"] / got["span_us"]),
        throttle.get("guards", ""), best["least_busy_process_share"],
        offered_rps > 0 and best[REPLY] >= IN_FULL * offered_rps,
    )  # fmt: skip


def lines(trials: list[Measured]) -> Iterator[str]:
    """Yield a Markdown table: a row for each server, configuration and testbed."""
    yield "| Testbed | Server | Speed-up | n | True | Error | Bound | Least busy | Left | Guards |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for key in sorted({(t.testbed, t.server, t.configuration) for t in trials}):
        every = [t for t in trials if (t.testbed, t.server, t.configuration, t.schedulers)
                 == (*key, "all")]  # fmt: skip
        one = [t for t in trials if t.testbed == key[0] and t.schedulers == "one"
               and t.server == ALONE.get(key[1], key[1])]  # fmt: skip
        if key[1] != PLANTED:
            own = [t for t in one if t.configuration == key[2]]
            one = own or one
        if every and one:
            yield _line(key, one, every)


def _line(key: tuple[str, str, str], one: list[Measured], every: list[Measured]) -> str:
    testbed, server, configuration = key
    values = [Values({t.n: t.replies_rps for t in side}) for side in (every, one)]
    ratio = effect(values)
    cpus, paired = every[0].cpus, server in (ALONE.get(server, server), PLANTED)
    costs = (median(t.cost_ns for t in side) for side in (one, every))
    bound = f"{emulation.most_speed_up(cpus, *costs):.2f}" if paired else ""
    truth = error = ""
    if server == PLANTED:
        exact = speed_up.of_lock(cpus, int(re.search(r"\d+", configuration)[0]) / 100)
        off = ratio.estimate / exact - 1
        truth, error = f"{exact:.2f}", f"{100 * off:+.0f} %{' !' if abs(off) > WRONG else ''}"
    shares = [t.least_busy for t in every if t.least_busy is not None]
    left = median(t.left for t in every)
    met = [t for t in (*one, *every) if t.guards == emulation.MET]
    broken = sorted({t.guards for t in (*one, *every)} - {emulation.MET, ""})
    guards = f"{len(met)} of {len(one) + len(every)} met" if met or broken else ""
    in_full = sorted({t.schedulers for t in (*one, *every) if t.in_full})
    if in_full:
        guards = "; ".join(filter(None, (guards, f"answered in full: {', '.join(in_full)}")))
    interval = f" [{ratio.low:.2f}, {ratio.high:.2f}]" if ratio.low is not None else ""
    cells = (
        testbed, " ".join(filter(None, (server, configuration))),
        f"{ratio.estimate:.2f}{interval}", ratio.trials, truth, error, bound,
        f"{min(shares):.2f}" if shares else "", f"{left:.2f}",
        "; ".join(filter(None, (guards, *broken))),
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def main() -> int:
    """Print the table of the dataset named on the command line; 1 if it has no trial."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", help="a folder in data/, such as scaling")
    given = parser.parse_args()
    folder = ROOT / "data" / given.dataset
    try:
        known = [measured(file) for file in inventory.recorded(folder)]
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    trials = [trial for trial in known if trial is not None]
    if not trials:
        print(f"data/{given.dataset} has no measured trial: measure it", file=sys.stderr)
        return 1
    print("\n".join(lines(trials)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
