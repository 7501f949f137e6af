"""Sampling the kernel while a trial runs: counters, sockets, CPU, memory, descriptors.

Counters are those of each host's network (proc(5)). A process's CPU time is counted in
nanoseconds, where that of the machine counts ticks and misses what runs between them. The load
average is the whole machine's, whatever the namespace.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import polars as pl

from deathmatch.hosts.host import MODES, USED, Host
from deathmatch.load.generator import START_UP_S

_NICENESS = 10
# Of a CPU, for counting the SYN queue.
_SYN_QUEUE_SHARE = 0.02

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
_MACHINE = [f"cpu_{mode}_us" for mode in MODES] + ["context_switches", "interrupts"]
_SERVER_CPUS = [f"server_cpus_{mode}_us" for mode in MODES]
_QUEUES = ["accept_queue_connections", "accept_queue_limit", "syn_queue_connections"]

SCHEMA = {
    "time_us": pl.Int64,
    "offered_rate_rps": pl.Int64,
    **dict.fromkeys(_COUNTERS, pl.Int64),
    **dict.fromkeys(_SOCKETS, pl.Int64),
    **dict.fromkeys(_QUEUES, pl.Int64),
    **dict.fromkeys([*_MACHINE, *_SERVER_CPUS], pl.Int64),
    "load_average": pl.Float64,
    **{f"{side}_{what}": pl.Int64 for side in ("server", "client") for what in USED},
}


class Sampler:
    """A thread that takes a sample now and every `interval_s`, until the `with` block ends.

    `offered_rate_rps` labels the samples taken from now on; None between rates.
    `hosts` are those of "server" and "client"; `pids(side)` returns the pids of the server or of
    the client at that moment; `server_cpus` are the numbers of the CPUs that the server may use.
    `rows` holds the samples, with the columns of SCHEMA; counters count from boot of their
    namespace, times are us since `start_ns` of the monotonic clock.
    """

    def __init__(
        self, interval_s: float, start_ns: int, port: int, hosts: Mapping[str, Host],
        pids: Callable[[str], list[int]], server_cpus: Sequence[int] = (),
    ):  # fmt: skip
        self.rows: list[dict] = []
        self.offered_rate_rps: int | None = None
        self._interval_s, self._start_ns, self._port = interval_s, start_ns, port
        self._hosts = hosts
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
        read = {side: host.counters() for side, host in self._hosts.items()}
        for column, (side, file, group, name) in _COUNTERS.items():
            row[column] = read[side][file].get((group, name))
        for column, (side, name) in _SOCKETS.items():
            row[column] = read[side]["sockstat"].get(("TCP", name))
        server = self._hosts["server"]
        row |= dict(zip(_QUEUES, [*accept_queue(server, self._port), self._syn_queue()]))
        machine = server.machine(self._server_cpus)
        row |= {column: machine[column] for column in [*_MACHINE, *_SERVER_CPUS, "load_average"]}
        for side in ("server", "client"):
            used = [self._hosts[side].usage(pid) for pid in self._pids(side)]
            for what in USED:
                row[f"{side}_{what}"] = sum(one[what] for one in used)
        return row

    def _syn_queue(self) -> int | None:
        """Return the SYN queue's length, or None if asking so soon would disturb the trial.

        The kernel walks through every connection for it: 10,000 take more than 10 ms.
        """
        began = time.monotonic()
        if began < self._syn_queue_due:
            return None
        server = self._hosts["server"]
        waiting = len(server.sockets("state", "syn-recv", "sport", "=", f":{self._port}"))
        ended = time.monotonic()
        self._syn_queue_due = ended + (ended - began) / _SYN_QUEUE_SHARE
        return waiting


def accept_queue(server: Host, port: int) -> tuple[int, int]:
    """Return the accept queue's length and limit, summed over listeners.

    ss(8) shows a listener's accept queue as Recv-Q and its limit as Send-Q.
    """
    listeners = server.sockets("state", "listening", "sport", "=", f":{port}")
    recv, send = ([int(line.split()[i]) for line in listeners] for i in (0, 1))
    return sum(recv), sum(send)
