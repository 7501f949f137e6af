"""The kernel's figures on a host, its network and its processes, and samples of them."""

import contextlib
import fcntl
import os
import re
import resource
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from deathmatch.agent import diag

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_HZ = os.sysconf("SC_CLK_TCK")
MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
IDLE = ("idle", "iowait")
USED = ("cpu_ns", "rss_bytes", "descriptors", "threads", "run_delay_ns")
COUNTED = ("netstat", "snmp", "sockstat")
# The share of time for the slow readings: counting the SYN queue takes CPU time, and reading shared
# pages blocks processes that map memory.
_SHARES = {"syn_queue": 0.02, "pss": 0.01}


def processes(other: Iterable[int] = ()) -> list[int]:
    """Return the living pids of this namespace, without the first process and `other`."""
    left_out = {1, *other}
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return sorted(pid for pid in pids if pid not in left_out and _lives(pid))


def _lives(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    # The name, which may have any characters, is in parentheses.
    return text.rpartition(")")[2].split()[0] not in "ZX"


def usage(pid: int) -> dict[str, int]:
    """Return the usage of one process, by the keys USED; zeros if it is gone.

    Shared pages count in full for each process; `pss_bytes` counts them once.
    """
    proc = Path(f"/proc/{pid}")
    try:
        return {
            "cpu_ns": cpu_ns(pid),
            "rss_bytes": int((proc / "statm").read_text().split()[1]) * PAGE_BYTES,
            "descriptors": _descriptors(proc / "fd"),
            "threads": len(os.listdir(proc / "task")),
            "run_delay_ns": run_delay_ns(pid),
        }
    except (OSError, IndexError):
        return dict.fromkeys(USED, 0)


def ended_children_ns(pid: int) -> int | None:
    """Return the CPU time of the process's ended children, and of theirs, in whole ticks.

    None if it ignores SIGCHLD, as the kernel then does not count them (wait(2), NOTES). 0 if the
    process is gone.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
        # The name, which may have any characters, is in parentheses; the third field follows it.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0
    ignored = int(re.search(r"^SigIgn:\s+([0-9a-f]+)$", status, re.MULTILINE)[1], 16)
    if ignored >> (signal.SIGCHLD - 1) & 1:
        return None
    # cutime and cstime are the fields 16 and 17 of proc(5).
    return (int(fields[13]) + int(fields[14])) * 1_000_000_000 // TICKS_HZ


def group_cpu_ns(file: str) -> int | None:
    """Return the CPU time of a cgroup's processes, also ended ones; None without the file.

    `file` is its cpuacct.usage (version 1) or its cpu.stat (version 2).
    """
    try:
        text = Path(file).read_text()
    except OSError:
        return None
    if used := re.search(r"^usage_usec (\d+)$", text, re.MULTILINE):
        return int(used[1]) * 1000
    return int(text) if text.strip().isdigit() else None


def pss_bytes(pids: Iterable[int]) -> int | None:
    """Return the memory of processes, with shared pages counted once.

    It is the sum of their proportional shares (PSS of smaps_rollup in proc(5)); None if one is
    unreadable. The kernel reads every page: about a millisecond for 100 MB.
    """
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except ProcessLookupError:
            continue
        except FileNotFoundError:
            if Path(f"/proc/{pid}").exists():
                return None
            continue
        except OSError:
            return None
        share = re.search(r"^Pss:\s+(\d+) kB$", text, re.MULTILINE)
        if share is None:
            return None
        total += int(share[1]) * 1024
    return total


def cpu_ns(pid: int) -> int:
    """Return the CPU time of a process (CPUCLOCK_SCHED, posix-timers.h); OSError if it is gone."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def _descriptors(folder: Path) -> int:
    # Linux 6.2 and later have the number; else each sample lists them, 15 ms for 10,000.
    return folder.stat().st_size or len(os.listdir(folder))


def threads(pid: int) -> list[int]:
    """Return the ids of the process's threads; OSError if it is gone."""
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]


def run_delay_ns(pid: int) -> int:
    """Return how long the process's threads have waited for a CPU; takes 0.02 ms a thread."""
    total = 0
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            total += int(file.read_text().split()[1])
    return total


def hold(folder: str, held: list[int]) -> bool:
    """Lock a folder while this process has it open; return whether it still exists.

    `held` gets the descriptor. A process that removes such folders locks them first.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    if not os.path.exists(folder):
        os.close(descriptor)
        return False
    held.append(descriptor)
    return True


def raise_descriptors(wanted: int) -> int:
    """Raise this process's limit of open files towards `wanted`; return the new limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (max(wanted, hard), hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, limit), limit))
            break
        except (ValueError, OSError):
            continue
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def waits(pid: int) -> list[int]:
    """Return the distinct numbers of the system calls in which the process's threads are."""
    numbers = set()
    for file in Path(f"/proc/{pid}/task").glob("*/syscall"):
        # "running" for a thread outside system calls.
        with contextlib.suppress(OSError):
            if number := re.match(r"\d+", file.read_text()):
                numbers.add(int(number[0]))
    return sorted(numbers)


def counters() -> dict[str, dict[str, int]]:
    """Return the network's counters since its namespace began: {file: {"group name": value}}."""
    return {name: parse(Path(f"/proc/self/net/{name}").read_text()) for name in COUNTED}


def parse(text: str) -> dict[str, int]:
    """Return {"group name": value} of /proc/net/netstat, snmp or sockstat.

    The first two have a line of names, then a line of values; sockstat alternates them.
    """
    values = {}
    names: dict[str, list[str]] = {}
    for line in text.splitlines():
        group, _, rest = line.partition(":")
        words = rest.split()
        if len(words) > 1 and words[0].isalpha() and words[1].isdigit():
            values |= {f"{group} {name}": int(text) for name, text in zip(words[::2], words[1::2])}
        elif group in names:
            # With fewer values than names, they cannot be matched.
            pairs = zip(names.pop(group), words, strict=True)
            values |= {f"{group} {name}": int(text) for name, text in pairs}
        else:
            names[group] = words
    return values


def machine(cpus: Iterable[int]) -> dict[str, int | float]:
    """Return the counts of the whole machine since its start.

    cpu_<mode>_us of all CPUs and server_cpus_<mode>_us of `cpus`, in steps of a tick;
    context_switches, interrupts; load_average of the last minute.
    """
    lines = Path("/proc/stat").read_text().splitlines()
    columns = {name: values for name, *values in map(str.split, lines)}

    def spent_us(name: str) -> list[int]:
        return [int(value) * 1_000_000 // TICKS_HZ for value in columns[name][: len(MODES)]]

    own = [sum(times) for times in zip(*(spent_us(f"cpu{cpu}") for cpu in cpus))]
    return {
        **{f"cpu_{mode}_us": spent for mode, spent in zip(MODES, spent_us("cpu"))},
        **{f"server_cpus_{mode}_us": spent for mode, spent in zip(MODES, own or [0] * len(MODES))},
        "context_switches": int(columns["ctxt"][0]),
        "interrupts": int(columns["intr"][0]),
        "load_average": os.getloadavg()[0],
    }


class Sampling:
    """It takes samples, at as little cost as possible."""

    def __init__(self) -> None:
        self._due = dict.fromkeys(_SHARES, 0.0)

    def take(
        self, pids: Iterable[int], port: int | None = None, cpus: Sequence[int] | None = None,
        group: str = "", settled: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Return {"at_ns", "counters", "usage"}, with `port` "queues", with `cpus` "machine".

        They are the instant of this host's monotonic clock; `counters`; the sum of `usage` over
        the processes; the length and limit of the accept queue, summed over the port's listeners,
        and the length of the SYN queue, None if reading it so soon would disturb the trial;
        `machine`.

        With `cpus`, the processes are a server's. "cpu_ns" then includes ended processes: those of
        the cgroup whose file is `group` (`group_cpu_ns`), without one those of children; None if it
        is unknown. "pss_bytes" is their memory, None if reading it so soon would disturb the trial
        and it has not `settled`.
        """
        pids = list(pids)
        taken: dict[str, Any] = {"at_ns": time.monotonic_ns(), "counters": counters()}
        used = [usage(pid) for pid in pids]
        taken["usage"] = {what: sum(process[what] for process in used) for what in USED}
        if port is not None:
            listeners = diag.listeners(port)
            queues = [
                sum(listener.waiting for listener in listeners),
                sum(listener.limit for listener in listeners),
            ]
            # The kernel reads all connections: 10,000 take some milliseconds.
            waiting = partial(diag.count, diag.SYN_RECEIVED, port)
            taken["queues"] = [*queues, self._seldom("syn_queue", waiting, False)]
        if cpus is not None:
            taken["machine"] = machine(cpus)
            taken["usage"]["cpu_ns"] = _cpu_ns(taken["usage"]["cpu_ns"], pids, group)
            taken["usage"]["pss_bytes"] = self._seldom("pss", partial(pss_bytes, pids), settled)
        return taken

    def _seldom(self, what: str, ask: Callable[[], int | None], settled: bool) -> int | None:
        """Return the reading; None if it would exceed its share of the time."""
        began = time.monotonic()
        if began < self._due[what] and not settled:
            return None
        answer = ask()
        ended = time.monotonic()
        self._due[what] = ended + (ended - began) / _SHARES[what]
        return answer


def _cpu_ns(living_ns: int, pids: Sequence[int], group: str) -> int | None:
    """Return the CPU time of processes and of those that ended; None if it is unknown."""
    if group:
        return group_cpu_ns(group)
    ended = [ended_children_ns(pid) for pid in pids]
    return None if None in ended else living_ns + sum(ended)
