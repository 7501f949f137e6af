"""What the steps of one trial share: what is measured, on which hosts, and what has happened."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from deathmatch.hosts import testbed
from deathmatch.hosts.host import Host, Process
from deathmatch.hosts.memory import Memory
from deathmatch.hosts.testbed import Testbed
from deathmatch.hosts.throttle import Throttle
from deathmatch.load import registry
from deathmatch.load.generator import LoadGenerator
from deathmatch.measure import idle_connections, server_process
from deathmatch.measure.idle_connections import Idle
from deathmatch.plan import testbed as plan
from deathmatch.plan.spec import Level
from deathmatch.plan.trial import Trial

PORT = 8080


class NotMeasured(Exception):
    """The server cannot be measured: the trial's outcome, the reason, and other keys of its record.

    A result, no fault of the harness.
    """

    def __init__(self, outcome: str, reason: str, **keys: list):
        super().__init__(reason)
        self.record = {"outcome": outcome, "reason": reason, **keys}


@dataclass
class State:
    """What has happened so far: who runs, how often the server was stopped, time with load."""

    client: Process | None = None
    idle: Idle | None = None
    stops: list[dict] = field(default_factory=list)
    offering_us: int = 0
    # Of the memory's limit, those that were told.
    breaches: int = 0


@dataclass(frozen=True)
class Context:
    """One trial within its sandbox; `out` is the folder of its results."""

    trial: Trial
    # Trial.spec(): what the record says, ready for JSON.
    spec: dict
    out: Path
    bed: Testbed
    sample_interval_s: float
    # The CPUs of "server" and "client".
    cpus: dict[str, list[int]]
    throttle: Throttle
    memory: Memory
    # For the placeholders of the server's command.
    values: dict[str, Level]
    generator: LoadGenerator
    state: State = field(default_factory=State)

    @property
    def server(self) -> Host:
        """The server's host."""
        return self.bed.server

    @property
    def client(self) -> Host:
        """The host that offers the load."""
        return self.bed.clients[0]

    @property
    def address(self) -> str:
        """The server's address."""
        return self.bed.address

    def breach(self) -> str:
        """Return what to say of a breach of the memory's limit since the last call, or ""."""
        before, self.state.breaches = self.state.breaches, self.memory.breaches()
        return self.memory.breach if self.state.breaches > before else ""

    @property
    def idle_connections(self) -> int:
        """How many connections are held idle beside the load."""
        return self.trial.variant.factors.get(idle_connections.FACTOR, 0)

    def own_pids(self) -> set[int]:
        """Return the pids in the sandbox that are not the server's."""
        started = [self.state.client, self.state.idle and self.state.idle.process]
        return self.bed.own_pids() | {process.pid for process in started if process}

    def server_pids(self) -> list[int]:
        """Return the pids of the server and of all that it started."""
        return self.server.processes(self.own_pids())

    def end(self) -> None:
        """End what is left of the server, and remove the groups that limited it."""
        self.server.kill(self.server_pids(), server_process.STOP_TIMEOUT_S)
        self.memory.end()
        self.throttle.end()


def prepare(trial: Trial, spec: dict, bed: plan.Testbed, out: Path) -> Context:
    """Build the testbed, share out the CPUs and throttle the server; UserError if that fails.

    This process keeps to the client's CPUs from now on.
    """
    hosts = testbed.build(bed, spec["sysctl"])
    available = hosts.server.affinity()
    on_all = trial.variant.factors.get("schedulers") == "all"
    wanted = bed.server.cpus_all if on_all else None
    cpus = {
        "server": testbed.cpus(wanted or bed.server.cpus, available),
        "client": testbed.cpus(bed.client.cpus, available),
    }
    # The harness keeps off the server's CPUs as far as there are others.
    os.sched_setaffinity(0, cpus["client"])
    throttled = hosts.throttle(bed.server, len(cpus["server"]))
    return Context(
        trial=trial, spec=spec, out=out, bed=hosts, sample_interval_s=bed.sample_interval_s,
        cpus=cpus, throttle=throttled, memory=hosts.limit_memory(bed.server, throttled),
        values=trial.placeholders | {"workers": len(cpus["server"]) if on_all else 1},
        generator=registry.generator(spec["client"]),
    )  # fmt: skip
