"""One reading: in which of the kernel's functions a server spends its CPU time, by perf(1).

Called in a sandbox; see `control.profile`. Hardware counters are not needed: perf's software clock
takes a sample of the call chain so many times for each second that the server runs.
"""

import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts.testbed import Testbed
from deathmatch.measure import client, trial
from deathmatch.measure.context import Context, prepare
from deathmatch.plan.trial import Trial

# No divisor of a usual rate of requests, which would be sampled always at the same place.
SAMPLES_HZ = 3989
# Until perf has opened what it samples.
OPEN_S = 0.5
KERNEL = 0xFFFF_8000_0000_0000

USER, WAIT, SLEEP, RECEIVE, SEND, INTERRUPT, OTHER = (
    "user", "look at descriptors", "sleep, wake", "receive", "send", "interrupts", "other kernel",
)  # fmt: skip
PHASES = (WAIT, SLEEP, RECEIVE, SEND, INTERRUPT, OTHER, USER)
_ENTRIES = {
    RECEIVE: ("recvfrom", "recvmsg", "read"),
    SEND: ("sendto", "sendmsg", "write", "writev"),
    WAIT: ("poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "io_uring_enter"),
}
# Linux before 4.17 and other architectures have other prefixes.
_SYSTEM_CALL = ("__x64_sys_", "__arm64_sys_", "__se_sys_", "sys_")
_INTERRUPT = ("asm_sysvec_", "asm_common_interrupt", "el1h_64_irq", "el0t_64_irq")
_RING = {"io_recv": RECEIVE, "io_read": RECEIVE, "io_send": SEND, "io_write": SEND}

Stack = tuple[str, ...]


def reading(one: Trial, bed: Testbed, rate_rps: int, duration_s: float, out: Path) -> dict:
    """Return where the server's CPU time went at a rate.

    {"replies", "cpu_ns", "phases": samples by PHASES, "stacks": [[kernel functions, samples]]}:
    functions from the system call inwards, each stack of a hundredth of the samples or more.
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
    words = ["perf", "record", "-e", "cpu-clock", "-F", str(SAMPLES_HZ), "-g", "-o", str(data)]
    words += ["-p", ",".join(map(str, pids)), "--", "sleep", str(duration_s + 2 * OPEN_S)]
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
    counted = Counter(stacks(printed.splitlines()))
    return {
        "replies": client.replies(context, offered, duration_s), "cpu_ns": cpu_ns,
        **summary(counted),
    }  # fmt: skip


def _cpu_ns(context: Context, pids: Iterable[int]) -> int:
    return sum(context.server.usage(pid)["cpu_ns"] for pid in pids)


def stacks(lines: Iterable[str]) -> Iterator[Stack]:
    """Yield the call chains that `perf script -F ip,sym` printed, from the outermost function.

    Of the kernel's functions only: a sample of the program itself is ().
    """
    chain: list[str] = []
    seen = False
    for line in [*lines, ""]:
        words = line.split(maxsplit=1)
        if not words:
            if seen:
                yield tuple(reversed(chain))
            chain, seen = [], False
            continue
        seen = True
        if int(words[0], 16) >= KERNEL:
            chain.append(words[1].strip() if len(words) > 1 else "[unknown]")


def phase(stack: Stack) -> str:
    """Return to what a call chain belongs, one of PHASES.

    What an interrupt does on top of a system call is the interrupt's; what a packet does that the
    call sends is the call's, the other end's receiving included (one machine).
    """
    if not stack:
        return USER
    if any(name.startswith(_INTERRUPT) for name in stack):
        return INTERRUPT
    for name in stack:
        if name in _RING:
            return _RING[name]
    called = next((_called(name) for name in stack if name.startswith(_SYSTEM_CALL)), None)
    found = next((one for one, names in _ENTRIES.items() if called in names), OTHER)
    if found == WAIT and any(name in ("schedule", "__schedule") for name in stack):
        return SLEEP
    return found


def _called(name: str) -> str:
    for prefix in _SYSTEM_CALL:
        name = name.removeprefix(prefix)
    return name


def summary(counted: Counter[Stack]) -> dict:
    """Return `phases` and `stacks` as a reading has them."""
    whole, phases = counted.total(), dict.fromkeys(PHASES, 0)
    for stack, count in counted.items():
        phases[phase(stack)] += count
    kept = [[list(stack), n] for stack, n in sorted(counted.items()) if 100 * n >= whole]
    return {"phases": phases, "stacks": kept}
