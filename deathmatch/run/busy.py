"""Other load on this machine's CPUs, reported before anything is measured."""

import time
from collections.abc import Callable

import psutil

from deathmatch.hosts.audit import WARNED_BUSY

WINDOW_S = 1.0
MOST_NAMED = 3
LEAST_SHARE = 0.02  # of the time of all CPUs: a process below it is not named


def look(window_s: float = WINDOW_S) -> str:
    """Return which processes use the CPUs, such as "87 % of the CPUs: 85 % by pid 123 (name)".

    "" if they use at most a tenth. Shares are of the time of all CPUs, and include what the
    hypervisor took. This process and its children do not count. Takes `window_s`.
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
    """Wait until the machine is quiet, for at most `most_s`.

    `say` is called once with what runs, and at the end if the machine is still busy.
    """
    deadline, said = time.monotonic() + most_s, False
    while busy := look(window_s):
        if time.monotonic() >= deadline:
            say(f"continues, though the machine is busy, which distorts the results: {busy}")
            return
        if not said:
            say(f"waits for a quiet machine, at most {most_s:g} s; now it is busy: {busy}")
        said = True


def _used_s() -> dict[psutil.Process, float]:
    every = psutil.process_iter(["name", "cpu_times"])
    return {one: sum(one.info["cpu_times"][:2]) for one in every if one.info["cpu_times"]}
