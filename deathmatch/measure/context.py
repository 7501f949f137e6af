"""What the steps of one trial share: its specification, its hosts, and its state so far."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deathmatch.agent.children import LIMIT_BYTES
from deathmatch.agent.diag import ESTABLISHED
from deathmatch.hosts import accounting
from deathmatch.hosts.accounting import Accounting
from deathmatch.hosts.awake import ASLEEP, Awake
from deathmatch.hosts.host import Host
from deathmatch.hosts.memory import Memory
from deathmatch.hosts.process import Process
from deathmatch.hosts.testbed import Testbed
from deathmatch.load import registry
from deathmatch.load.generator import LoadGenerator, Part
from deathmatch.measure import server_process
from deathmatch.measure.conformance import Check
from deathmatch.measure.server_process import Stop
from deathmatch.plan.spec import Level
from deathmatch.plan.trial import Trial

PORT = 8080


class NotMeasured(Exception):
    """The server cannot be measured: the trial's outcome, the reason, and the checks, if any.

    This is a result, not a fault of the harness. `record` has the keys of trial.json.
    """

    def __init__(self, outcome: str, reason: str, checks: Sequence[Check] = ()):
        super().__init__(reason)
        self.record = {"outcome": outcome, "reason": reason}
        if checks:
            self.record["conformance"] = [check.record() for check in checks]


class StepTimes:
    """A stopwatch of the steps of a trial, which always runs, for one step at a time.

    Steps may be nested: while an inner one runs, the outer one is paused. So the times add up to
    the time since the stopwatch was made; time outside steps is `other`. The names are the fields
    of `plan.record.RecordedSteps`. `clock` returns nanoseconds.
    """

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        self._ns: dict[str, int] = {}
        self._running = "other"
        self._since_ns = clock()

    @contextlib.contextmanager
    def of(self, step: str) -> Iterator[None]:
        """Count the time of the block for a step."""
        outer = self._running
        self._switch(step)
        try:
            yield
        finally:
            self._switch(outer)

    def record(self) -> dict[str, int]:
        """Return the microseconds of each step so far."""
        self._switch(self._running)
        return {step: ns // 1000 for step, ns in self._ns.items()}

    def _switch(self, step: str) -> None:
        now_ns = self._clock()
        self._ns[self._running] = self._ns.get(self._running, 0) + now_ns - self._since_ns
        self._running, self._since_ns = step, now_ns


@dataclass
class State:
    """The state of a trial: running processes, the server's stops, the time under load."""

    # The running load generators, by their hosts' names.
    loads: dict[str, list[Process]] = field(default_factory=dict)
    # Processes that hold idle connections.
    idle: list[Process] = field(default_factory=list)
    # The server's processes, one for each of its starts.
    started: list[Process] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
    offering_us: int = 0
    # Reported breaches of the memory limit.
    breaches: int = 0
    # The network settings of the server's host before its first start; what the server has changed.
    settings: dict[str, str] = field(default_factory=dict)
    left: str = ""


@dataclass(frozen=True)
class Context:
    """One trial on its hosts; `out` is the folder of its results."""

    trial: Trial
    # `Trial.spec()`, as in the record.
    spec: dict
    out: Path
    bed: Testbed
    sample_interval_s: float
    # The CPUs of each host, by its name.
    cpus: dict[str, list[int]]
    memory: Memory
    # For the placeholders of the server's command.
    values: dict[str, Level]
    generator: LoadGenerator
    state: State = field(default_factory=State)
    accounting: Accounting = field(default_factory=Accounting)
    awake: Awake = ASLEEP
    times: StepTimes = field(default_factory=StepTimes)

    @property
    def server(self) -> Host:
        """The server's host."""
        return self.bed.server

    @property
    def clients(self) -> tuple[Host, ...]:
        """The hosts that offer the load."""
        return self.bed.clients

    @property
    def address(self) -> str:
        """The server's address."""
        return self.bed.address

    def breach(self) -> str:
        """Return the message on a breach of the memory limit since the last call, or ""."""
        before, self.state.breaches = self.state.breaches, self.memory.breaches()
        return self.memory.breach if self.state.breaches > before else ""

    @property
    def idle_connections(self) -> int:
        """How many connections are held idle during the load."""
        return self.trial.variant.factors.get(registry.IDLE_FACTOR, 0)

    def server_pids(self) -> list[int]:
        """Return the pids of the server and of all its descendants."""
        return self.server.processes()

    def established(self) -> int:
        """Return how many connections of the server's port are established."""
        return self.server.count(ESTABLISHED, PORT)

    def end(self) -> None:
        """Kill what is left of the server, and remove its cgroups."""
        self.server.kill(self.server_pids(), server_process.STOP_TIMEOUT_S)
        self.accounting.end()
        self.memory.end()

    def server_log(self) -> dict[str, int]:
        """Return how much of the server's output may be kept, and how much was left out."""
        left_out = [process.left_out_bytes() for process in self.state.started]
        # If its starts share a file, each counts for all.
        total = max(left_out, default=0) if self.server.shared else sum(left_out)
        return {"limit_bytes": LIMIT_BYTES, "left_out_bytes": total}

    def part(self, client: Host) -> Part:
        """Return a client's part of the load."""
        return Part(self.clients.index(client), len(self.clients))

    def sources(self, client: Host) -> tuple[str, ...]:
        """Return the addresses that a client connects from; () if there is only one."""
        return self.bed.side(client.name).sources


def prepare(trial: Trial, spec: dict, hosts: Testbed, out: Path) -> Context:
    """Assign the CPUs and limit the server's memory; raise UserError if that fails.

    From now on this process and the agents avoid the server's CPUs, if there are others.
    """
    level = trial.variant.factors.get("schedulers", "one")
    cpus = hosts.cpus(level != "one")
    _keep_off(hosts, cpus)
    available = len(cpus["server"])
    limited = hosts.limit_memory()
    return Context(
        trial=trial, spec=spec, out=out, bed=hosts,
        sample_interval_s=hosts.spec.sample_interval_s, cpus=cpus,
        memory=limited, accounting=accounting.apply(hosts.server, limited.group),
        values=trial.placeholders | {"workers": workers(level, available)},
        generator=registry.of_trial(spec),
    )  # fmt: skip


def workers(level: str, cpus: int) -> int:
    """Return the number of processes or schedulers for a level of the factor `schedulers`."""
    return {"one": 1, "all": cpus, "all-and-one": cpus + 1}[level]


def _keep_off(hosts: Testbed, cpus: Mapping[str, Sequence[int]]) -> None:
    """Keep this process and the agents off the CPUs that measure, if there are others.

    On one machine they share those of the clients, whose CPU time is not measured.
    """
    if not hosts.separate:
        shared = sorted({cpu for host in hosts.clients for cpu in cpus[host.name]})
        os.sched_setaffinity(0, shared)
        for host in hosts.hosts:
            host.keep_to(shared)
        return
    for host in hosts.hosts:
        available = host.affinity()
        host.keep_to([cpu for cpu in available if cpu not in cpus[host.name]] or available)
