"""What else uses this machine's CPUs, to be seen before anything is measured."""

import time
from collections.abc import Callable

import psutil

from deathmatch.hosts.audit import WARNED_BUSY

WINDOW_S = 1.0
MOST_NAMED = 3
# Of all CPUs: a process below it is not named.
LEAST_SHARE = 0.02


def look(window_s: float = WINDOW_S) -> str:
    """Return who else uses the CPUs, such as "87 % of the CPUs: 85 % by pid 123 (name)".

    The shares are of the time of all CPUs, what the hypervisor took included; "" if it is a tenth
    at most. Takes `window_s`. This process and what it has started do not count.
    """
    before_s, began_s = _used_s(), time.monotonic()
    worked = psutil.cpu_percent(window_s) / 100
    available_s = (time.monotonic() - began_s) * psutil.cpu_count()
    spent = {one: (s - before_s.get(one, 0)) / available_s for one, s in _used_s().items()}
    me = psutil.Process()
    own = {me, *me.children(recursive=True)}
    share = worked - sum(spent.get(one, 0) for one in own)
    if share <= WARNED_BUSY:
        return ""
    others = sorted(spent.keys() - own, key=lambda one: -spent[one])[:MOST_NAMED]
    named = [
        f"{100 * spent[one]:.0f} % by pid {one.pid} ({one.info['name']})"
        for one in others if spent[one] >= LEAST_SHARE
    ]  # fmt: skip
    who = ", ".join(named) or "by processes that cannot be seen from here"
    return f"{100 * share:.0f} % of the CPUs: {who}"


def wait(say: Callable[[str], None], most_s: float, window_s: float = WINDOW_S) -> None:
    """Wait until the machine is quiet, `most_s` at most.

    `say` is told once what runs, and at the end whether it goes on all the same.
    """
    deadline, told = time.monotonic() + most_s, False
    while busy := look(window_s):
        if time.monotonic() >= deadline:
            say(f"goes on, though the machine is busy, which distorts what is measured: {busy}")
            return
        if not told:
            say(f"waits until the machine is quiet, {most_s:g} s at most; now it is busy: {busy}")
        told = True


def _used_s() -> dict[psutil.Process, float]:
    """Return the CPU time of every process in seconds."""
    every = psutil.process_iter(["name", "cpu_times"])
    return {one: sum(one.info["cpu_times"][:2]) for one in every if one.info["cpu_times"]}
