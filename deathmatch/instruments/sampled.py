"""One reading: in which of the kernel's functions a server spends its CPU time, by perf(1).

`instruments.profile` calls it in a sandbox. No hardware counter is needed: perf's software clock
takes a sample of the call chain so many times for each second that the server runs.
"""

import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts.testbed import Testbed
from deathmatch.instruments import call_chains
from deathmatch.measure import client, trial
from deathmatch.measure.context import Context, prepare
from deathmatch.plan.trial import Trial

# Until perf has opened what it samples.
OPEN_S = 0.5


def reading(one: Trial, bed: Testbed, rate_rps: int, duration_s: float, out: Path) -> dict:
    """Return where the server's CPU time went at a rate.

    {"replies", "cpu_ns", "phases": {name: samples}, "stacks": [[kernel functions, samples]]}, as
    `call_chains.summary` has them.
    UserError if the server or perf does not start.
    """
    context = prepare(one, one.spec(), bed, out)
    try:
        running, problem = trial.start(context)
        problem = problem or trial.hold_idle(context)
        if problem:
            raise UserError(f"the server did not start: {problem}\n{running.tail()}")
        client.warm_up(context)
        found = _profiled(context, rate_rps, duration_s, out)
        trial.stop(context, running)
    finally:
        context.end()
    return found


def _profiled(context: Context, rate_rps: int, duration_s: float, out: Path) -> dict:
    pids, data, log = context.server_pids(), out / "perf.data", out / "perf.log"
    words = ["perf", "record", "-e", "cpu-clock", "-F", str(call_chains.SAMPLES_HZ), "-g"]
    words += ["-o", str(data), "-p", ",".join(map(str, pids))]
    words += ["--", "sleep", str(duration_s + 2 * OPEN_S)]
    # Where it takes nothing from the server.
    cpus = context.cpus[context.clients[0].name]
    perf = context.server.start(words, output=log, cpus=cpus)
    time.sleep(OPEN_S)
    before_ns = _cpu_ns(context, pids)
    offered = client.offer(context, rate_rps, duration_s, out / "report.txt")
    cpu_ns = _cpu_ns(context, pids) - before_ns
    status = perf.wait(duration_s + 10)
    if status != 0:
        what = f"perf ended with {status}: {log.read_text(errors='replace')[-300:]}"
        raise UserError(what, "perf record", "let perf_event_paranoid allow it, or be root")
    printed = subprocess.run(
        ["perf", "script", "-i", str(data), "-F", "ip,sym"], capture_output=True, text=True
    ).stdout
    counted = Counter(call_chains.read(printed.splitlines()))
    return {
        "replies": client.replies(context, offered, duration_s), "cpu_ns": cpu_ns,
        **call_chains.summary(counted),
    }  # fmt: skip


def _cpu_ns(context: Context, pids: Iterable[int]) -> int:
    return sum(context.server.usage(pid)["cpu_ns"] for pid in pids)
