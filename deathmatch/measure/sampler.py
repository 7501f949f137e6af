"""Sampling the kernel while a trial runs: counters, sockets, CPU, memory, descriptors.

Counters come from /proc/<pid>/net (proc(5)) of a process in each namespace, a process's CPU
time from its clock (clock_getcpuclockid(3)), which counts nanoseconds, those of threads that
ended included, where /proc/stat counts ticks and misses what runs between them. The load average
(/proc/loadavg) is the whole machine's, whatever the namespace: proc(5).
"""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import psutil

_TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")
# Exec of ip, taskset and httperf, generously.
START_UP_S = 0.04
_NICENESS = 10
# Of a CPU, for counting the SYN queue.
_SYN_QUEUE_SHARE = 0.02
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

# Column -> (side, file, group, counter). TCPSynRetrans counts SYNs sent again, so the client's.
_COUNTERS = {
    "server_listen_overflows": ("server", "netstat", "TcpExt", "ListenOverflows"),
    "server_listen_drops": ("server", "netstat", "TcpExt", "ListenDrops"),
    "server_syncookies_sent": ("server", "netstat", "TcpExt", "SyncookiesSent"),
    "server_passive_opens": ("server", "snmp", "Tcp", "PassiveOpens"),
    "server_retransmitted_segments": ("server", "snmp", "Tcp", "RetransSegs"),
    "server_resets_sent": ("server", "snmp", "Tcp", "OutRsts"),
    "server_established": ("server", "snmp", "Tcp", "CurrEstab"),
    "client_active_opens": ("client", "snmp", "Tcp", "ActiveOpens"),
    "client_attempt_fails": ("client", "snmp", "Tcp", "AttemptFails"),
    "client_syn_retransmissions": ("client", "netstat", "TcpExt", "TCPSynRetrans"),
    "client_established": ("client", "snmp", "Tcp", "CurrEstab"),
}
_SOCKETS = {
    "server_time_wait": ("server", "tw"),
    "server_tcp_sockets": ("server", "alloc"),
    "client_time_wait": ("client", "tw"),
}
MODES = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"]
_MACHINE = [f"cpu_{mode}_us" for mode in MODES] + ["context_switches", "interrupts"]
_SERVER_CPUS = [f"server_cpus_{mode}_us" for mode in MODES]
_QUEUES = ["accept_queue_connections", "accept_queue_limit", "syn_queue_connections"]
_PROCESS = ["cpu_ns", "rss_bytes", "descriptors", "threads"]

SCHEMA = {
    "time_us": pl.Int64,
    "offered_rate_rps": pl.Int64,
    **dict.fromkeys(_COUNTERS, pl.Int64),
    **dict.fromkeys(_SOCKETS, pl.Int64),
    **dict.fromkeys(_QUEUES, pl.Int64),
    **dict.fromkeys([*_MACHINE, *_SERVER_CPUS], pl.Int64),
    "load_average": pl.Float64,
    **{f"{side}_{what}": pl.Int64 for side in ("server", "client") for what in _PROCESS},
}


class Sampler:
    """A thread that takes a sample now and every `interval_s`, until the `with` block ends.

    `offered_rate_rps` labels the samples taken from now on; None between rates.
    `pids(side)` returns the pids of the server or of the client at that moment; `server_cpus`
    are the numbers of the CPUs that the server may use.
    `rows` holds the samples, with the columns of SCHEMA; counters count from boot of their
    namespace, times are us since `start_ns` of the monotonic clock.
    """

    def __init__(
        self, interval_s: float, start_ns: int, port: int, client_pid: int,
        pids: Callable[[str], list[int]], server_cpus: Sequence[int] = (),
    ):  # fmt: skip
        self.rows: list[dict] = []
        self.offered_rate_rps: int | None = None
        self._interval_s, self._start_ns, self._port = interval_s, start_ns, port
        self._net = {"server": Path("/proc/self/net"), "client": Path(f"/proc/{client_pid}/net")}
        self._pids, self._server_cpus = pids, server_cpus
        self._syn_queue_due = 0.0
        self._ended, self._taking = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def _loop(self) -> None:
        # Where the client waits for the same CPU, it goes first; a tenth of it is enough for this.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        due = time.monotonic()
        while not self._ended.wait(max(0, due - time.monotonic())):
            self.take()
            # A late sample must not be followed by a burst.
            due = max(due + self._interval_s, time.monotonic())

    @contextmanager
    def offering(self, rate_rps: int, duration_s: float) -> Iterator[None]:
        """Label samples with an offered rate; take one at either end and when it was offered.

        The client has START_UP_S more than `duration_s`, as its process starts in the block.
        """
        self.offered_rate_rps = rate_rps
        self.take()
        offered = threading.Timer(duration_s + START_UP_S, self.take)
        offered.start()
        try:
            yield
        finally:
            offered.cancel()
            offered.join()
            self.take()
            self.offered_rate_rps = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take no sample, and run no command for one, until the block ends."""
        with self._taking:
            yield

    def take(self) -> None:
        """Take a sample now, from any thread."""
        with self._taking:
            self.rows.append(self._sample())

    def _sample(self) -> dict:
        row = {
            "time_us": (time.monotonic_ns() - self._start_ns) // 1000,
            "offered_rate_rps": self.offered_rate_rps,
        }
        read = {
            (side, file): counters((net / file).read_text())
            for side, net in self._net.items()
            for file in ("netstat", "snmp", "sockstat")
        }
        for column, (side, file, group, name) in _COUNTERS.items():
            row[column] = read[side, file].get((group, name))
        for column, (side, name) in _SOCKETS.items():
            row[column] = read[side, "sockstat"].get(("TCP", name))
        row |= dict(zip(_QUEUES, [*accept_queue(self._port), self._syn_queue()]))
        times, each, stats = psutil.cpu_times(), psutil.cpu_times(percpu=True), psutil.cpu_stats()
        row |= {f"cpu_{mode}_us": int(getattr(times, mode) * 1e6) for mode in MODES}
        row |= {"context_switches": stats.ctx_switches, "interrupts": stats.interrupts}
        for mode, column in zip(MODES, _SERVER_CPUS):
            row[column] = int(sum(getattr(each[cpu], mode) for cpu in self._server_cpus) * 1e6)
        row["load_average"] = os.getloadavg()[0]
        for side in ("server", "client"):
            used = [usage(pid) for pid in self._pids(side)]
            for what in _PROCESS:
                row[f"{side}_{what}"] = sum(one[what] for one in used)
        return row

    def _syn_queue(self) -> int | None:
        """Return the SYN queue's length, or None if asking so soon would disturb the trial.

        The kernel walks through every connection for it: 10,000 take more than 10 ms.
        """
        began = time.monotonic()
        if began < self._syn_queue_due:
            return None
        waiting = len(sockets("state", "syn-recv", "sport", "=", f":{self._port}"))
        ended = time.monotonic()
        self._syn_queue_due = ended + (ended - began) / _SYN_QUEUE_SHARE
        return waiting


def counters(text: str) -> dict[tuple[str, str], int]:
    """Return {(group, counter): value} of /proc/net/netstat, snmp or sockstat.

    The first two print a line of names, then a line of values; sockstat names and values in turn.
    """
    found = {}
    names: dict[str, list[str]] = {}
    for line in text.splitlines():
        group, _, rest = line.partition(":")
        words = rest.split()
        if len(words) > 1 and words[0].isalpha() and words[1].isdigit():
            found |= {(group, name): int(value) for name, value in zip(words[::2], words[1::2])}
        elif group in names:
            found |= {(group, name): int(value) for name, value in zip(names.pop(group), words)}
        else:
            names[group] = words
    return found


def usage(pid: int) -> dict[str, int]:
    """Return cpu_ns, rss_bytes, descriptors and threads of one process, zeros if it is gone."""
    proc = Path(f"/proc/{pid}")
    try:
        return {
            "cpu_ns": time.clock_gettime_ns(_cpu_clock(pid)),
            "rss_bytes": int((proc / "statm").read_text().split()[1]) * _PAGE_BYTES,
            "descriptors": _descriptors(proc / "fd"),
            "threads": len(os.listdir(proc / "task")),
        }
    except (OSError, IndexError):
        return dict.fromkeys(_PROCESS, 0)


def _descriptors(folder: Path) -> int:
    # Linux 6.2 and later say how many there are; a list of 10,000 takes 15 ms, every sample.
    return folder.stat().st_size or len(os.listdir(folder))


def _cpu_clock(pid: int) -> int:
    # As the kernel numbers it (CPUCLOCK_SCHED in posix-timers.h); Python has no call for it.
    return (~pid << 3) | 2


def accept_queue(port: int) -> tuple[int, int]:
    """Return the accept queue's length and limit, summed over listeners.

    ss(8) shows a listener's accept queue as Recv-Q and its limit as Send-Q.
    """
    listeners = sockets("state", "listening", "sport", "=", f":{port}")
    recv, send = ([int(line.split()[i]) for line in listeners] for i in (0, 1))
    return sum(recv), sum(send)


def sockets(*query: str) -> list[str]:
    """Return the lines of ss(8) for TCP sockets that match its filter, without a heading."""
    return subprocess.run(
        ["ss", "--no-header", "--tcp", "--numeric", *query],
        capture_output=True, text=True, check=False,
    ).stdout.splitlines()  # fmt: skip
