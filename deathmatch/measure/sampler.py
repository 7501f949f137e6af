"""Sample the kernel while a trial runs: counters, sockets, CPU, memory, descriptors.

Counters are those of each host's network (proc(5)). A process's CPU time is exact to nanoseconds;
that of the machine is counted in ticks, and misses what runs between them. The load average is that
of the whole machine, whatever the namespace.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from deathmatch.agent.kernel import USED
from deathmatch.data.kernel_samples import COUNTERS, LOAD, MACHINE, QUEUES, SERVER_CPUS, SOCKETS
from deathmatch.hosts.awake import ASLEEP, Awake
from deathmatch.hosts.connection import HostLost
from deathmatch.hosts.host import Host
from deathmatch.load.generator import START_UP_S


class Sampler:
    """A thread that takes a sample now and every `interval_s`, until the `with` block ends.

    `offered_rate_rps` labels the samples taken from now on; None between rates. `load_pids(client)`
    returns the pids of a client's load generator; all processes on the server's host are the
    server's, which may use the given CPUs. `server_group` is the file of its cgroup's CPU time, if
    it has one (`hosts.accounting`). `awake` are the processes that keep idle CPUs awake.
    `rows` are the samples, with the columns of SCHEMA, those of several clients added up; counters
    count from the beginning of their namespace, times are us since `began_ns` of the monotonic
    clock.
    """

    def __init__(
        self, interval_s: float, began_ns: int, port: int, server: Host, clients: Sequence[Host],
        load_pids: Callable[[Host], list[int]], server_cpus: Sequence[int] = (),
        server_group: str = "", awake: Awake = ASLEEP,
    ):  # fmt: skip
        self.rows: list[dict] = []
        self.offered_rate_rps: int | None = None
        self._interval_s, self.began_ns, self._port = interval_s, began_ns, port
        self._server, self._clients = server, clients
        self._load_pids, self._server_cpus = load_pids, server_cpus
        self._server_group, self._awake = server_group, awake
        self.opened: dict[str, int] = {}
        self._active_opens: dict[str, int] = {}
        self._ended, self._taking = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def _loop(self) -> None:
        due = time.monotonic()
        # The thread that waits for the host reports the loss.
        with contextlib.suppress(HostLost):
            while not self._ended.wait(max(0, due - time.monotonic())):
                self.take()
                # A late sample must not be followed by a burst.
                due = max(due + self._interval_s, time.monotonic())

    @contextmanager
    def offering(self, rate_rps: int, duration_s: float) -> Iterator[None]:
        """Label samples with an offered rate; take one at both ends and when it has been offered.

        That is START_UP_S later than `duration_s`, as the client starts within the block.
        After it, `opened` has how many connections each client's kernel began in that time, by
        name; {} if the load ended earlier.
        """
        # These samples are of an attempt that is repeated.
        for row in self.rows:
            if row["offered_rate_rps"] == rate_rps:
                row["offered_rate_rps"] = None
        self.offered_rate_rps, self.opened = rate_rps, {}
        self.take()
        began = dict(self._active_opens)
        offered = threading.Timer(duration_s + START_UP_S, self._offered, [began])
        offered.start()
        try:
            yield
        finally:
            offered.cancel()
            offered.join()
            self.take(settled=True)
            self.offered_rate_rps = None

    def _offered(self, began: dict[str, int]) -> None:
        with contextlib.suppress(HostLost):
            self.take()
            self.opened = {
                name: opens - began[name] for name, opens in self._active_opens.items()
            }  # fmt: skip

    def take(self, settled: bool = False) -> None:
        """Take a sample now, from any thread; with the slow readings if the load has `settled`."""
        with self._taking:
            self.rows.append(self._sample(settled))

    def _sample(self, settled: bool) -> dict:
        row = {
            "time_us": (time.monotonic_ns() - self.began_ns) // 1000,
            "offered_rate_rps": self.offered_rate_rps,
        }
        taken = {
            "server": [
                self._server.sample(
                    None, self._port, list(self._server_cpus), self._server_group, settled
                )
            ],
            "client": [client.sample(self._load_pids(client)) for client in self._clients],
        }
        self._active_opens = {
            client.name: sample["counters"]["snmp"]["Tcp ActiveOpens"]
            for client, sample in zip(self._clients, taken["client"])
        }
        for column, (side, file, name) in (COUNTERS | SOCKETS).items():
            row[column] = _sum(sample["counters"][file].get(name) for sample in taken[side])
        (server,) = taken["server"]
        row |= dict(zip(QUEUES, server["queues"]))
        self._awake.count_as_idle(server["machine"], self._server_cpus)
        row |= {name: server["machine"][name] for name in (*MACHINE, *SERVER_CPUS, LOAD)}
        for side, samples in taken.items():
            for what in USED:
                row[f"{side}_{what}"] = _sum(sample["usage"][what] for sample in samples)
        row["server_pss_bytes"] = server["usage"]["pss_bytes"]
        return row


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
