"""The record of one trial, `trial.json`: the keys that it must have, to be read."""

import datetime
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from deathmatch.plan.spec import Level, Spec

MEASURED = ("measured", "measured, with failures")
NOT_BUILT = "not built"
ENDED_WELL = "exit 0"
# 1: records without a version; 2: with the version and the seed.
SCHEMA_VERSION = 2
LEFT_BOUNDS = "left its bounds"
OUTCOMES = (*MEASURED, NOT_BUILT, "did not start", "answers wrongly", LEFT_BOUNDS)
# The step of a trial that is not part of its `wall_us`, the sum of the others.
BEFORE_WALL = "testbed"

Table = dict[str, Any]
# Both fit a column of 64 bits.
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Whole = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


# A file in the record's folder, or in one below it.
LOG = r"^[A-Za-z0-9][\w.=,-]*(/[A-Za-z0-9][\w.=,-]*)?$"


def optional(description: str, **bounds: Any) -> Any:
    """Return a key that a record may lack; it is then None."""
    return Field(None, description=description, **bounds)


class RecordPart(Spec):
    """A part of a record; it may have more keys than are checked here."""

    model_config = ConfigDict(extra="allow")


class RecordedSpec(RecordPart):
    """Everything that decides what was measured."""

    factors: dict[str, Level | None] = Field(description="The variant.")
    client: str | None = optional("The load generator.")
    measures: str | None = optional("What was measured without load.")
    load: Table = Field(description="What the client sent.")
    server_sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Of the server's sources.")


class LoadSpec(RecordedSpec):
    """The specification of a trial under load."""

    client: str = Field(description="The load generator.")
    duration_s: float = Field(
        gt=0, le=1e9, allow_inf_nan=False, description="How long each rate was offered."
    )


class RecordedStop(RecordPart):
    """How the server was stopped once."""

    on_sigterm: bool = Field(description="Whether it ended when it was asked to.")


class RecordedCheck(RecordPart):
    """A check of the server's answers."""

    name: str = Field(description="The name of the experiment's check.")
    ok: bool = Field(description="Whether it passed.")


class RecordedNetwork(RecordPart):
    """The kernel's network settings of a host."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Of all, as JSON sorted by name.")
    settings: dict[str, str] | None = optional("All settings, for the first host.")
    differs: dict[str, str | None] | None = optional(
        "For another host, the settings that differ from the first one's; null if it lacks one."
    )

    @model_validator(mode="after")
    def _whole_or_different(self) -> Self:
        if (self.settings is None) == (self.differs is None):
            raise ValueError("a host has either `settings` or `differs`")
        return self


class RecordedCalls(RecordPart):
    """The system calls of the server, or the reason why they were not counted."""

    replies: Count | None = optional("How many replies the server sent meanwhile.")
    calls: dict[str, Count] = Field({}, description="How often each was made.")


class RecordedClock(RecordPart):
    """The offset of a host's clock from the controller's."""

    bound_us: Count = Field(description="The greatest error of the offset, either way.")


class RecordedMachine(RecordPart):
    """The machine of a host."""

    cpu: Any = Field(description="Its model.")
    cpus: Any = Field(description="How many it has.")
    kernel: Any = Field(description="The release of Linux.")


class RecordedInterface(RecordPart):
    """The network interface of a host."""

    speed_bit_per_s: Count | None = optional("Its speed, if it has one.")


class RecordedHost(RecordPart):
    """The audit's readings of a host."""

    machine: RecordedMachine | None = optional("Its machine, if it has a machine of its own.")
    interface: RecordedInterface | None = optional("Its network interface.")


class StoragePoint(RecordPart):
    """The memory of a program that holds this number of messages."""

    messages: Count = Field(description="How many it held.")
    runtime_bytes: Count = Field(description="What its runtime says that it uses.")
    rss_bytes: Count = Field(description="Its resident set.")


class RecordedTools(RecordPart):
    """Each tool's package with its version, or its store path."""

    __pydantic_extra__: dict[str, dict[str, str]]

    harness: dict[str, str] = Field(description="What every trial runs on.")
    server: dict[str, str] = Field(description="The server's programs and packages.")


class Machine(RecordPart):
    """The facts about the machine that a reader needs to compare."""

    cpu: str | None = Field(description="Its model.")
    cpus: Count | None = Field(description="How many it has.")
    memory_bytes: Count | None = Field(description="Its memory.")
    kernel: str | None = Field(description="The release of Linux.")
    os: str | None = Field(description="The distribution.")
    toolchain: str | None = Field(description="Where the tools come from.")
    commit: str | None = Field(description="The version of this project.")
    commit_unknown: str | None = optional("Why there is no commit.")


class RecordedClient(RecordPart):
    """The part of one client in a rate that several clients offered together."""

    client: str = Field(
        description="The client's name in the testbed, with a number if several processes of its "
        "host shared its part."
    )
    log: str = Field(
        pattern=LOG, description="Its load generator's report, a path from the record's folder."
    )
    command: str = Field(description="How its load generator was called.")
    client_state: str = Field(description="How its load generator ended.")
    opened: Count | None = optional(
        "How many connections its kernel began in the offered time; absent if not counted."
    )
    late_us: Whole | None = Field(description="Its load generator's start after the agreed time.")
    clock_offset_us: Whole | None = Field(description="Its clock's lead over the controller's.")
    clock_bound_us: Count | None = Field(description="The greatest error of this lead, either way.")


# The steady rate of churn is the mean over so many rounds.
WINDOW_ROUNDS = 5
# Rounds are steady if two windows are alike.
LEAST_ROUNDS = 2 * WINDOW_ROUNDS


class RecordedChurn(RecordPart):
    """The connections that came and went before a rate, until they opened at a steady pace."""

    connections: int = Field(description="How many were opened in a round.")
    rates_cps: list[float] = Field(
        description="Connections opened per second in each round, from the first one's start to "
        "the last one's upgrade; 0 where none was opened."
    )
    steady: bool = Field(description="Whether the last rounds were steady.")
    wall_us: int = Field(ge=0, description="How long all rounds took.")
    left_established: int = Field(
        ge=0, description="How many connections the server still had when the rate began."
    )
    client_time_wait: int = Field(
        ge=0, description="How many ports of the clients were in TIME_WAIT when the rate began."
    )


class RecordedPoint(RecordPart):
    """A rate as it was offered, by a single client (`log`) or by several (`clients`)."""

    offered_rate_rps: Count = Field(description="The rate.")
    log: str | None = optional(
        "The load generator's report, a file next to the record.", pattern=LOG
    )
    clients: list[RecordedClient] | None = optional(
        "The part of each client that had one, in the order of the testbed.", min_length=1
    )
    fresh_start: bool = Field(description="Whether the server was started for this rate.")
    server_state: str = Field(description='"ran", or how the server ended.')
    client_state: str | None = optional("How the load generator ended.")
    wrong_answers: Count | None = optional(
        "How many answers had an unexpected status or content; absent if not counted."
    )
    first_wrong_answer: str | None = optional("The first wrong answer: its status and beginning.")
    warm_up: RecordedChurn | None = optional("The connections that came and went before the rate.")
    idle_held: Count | None = optional("How many connections were held in addition to the load.")
    clocks: dict[str, RecordedClock] | None = optional("The offsets of the hosts' clocks, by host.")
    workers: int | None = optional(
        "How many processes or scheduler threads the server should have; absent in older records.",
        ge=1, le=65_536,
    )  # fmt: skip
    workers_us: list[Count] | None = optional(
        "The CPU time of each thread of the server that has at least a hundredth of all, most "
        "first, until the load generator ended; absent in older records."
    )

    @model_validator(mode="after")
    def _by_one_or_by_several(self) -> Self:
        ones = [key for key in ("log", "client_state") if getattr(self, key) is not None]
        if self.clients is None and len(ones) < 2:
            raise ValueError("a point has log and client_state, or clients: this one lacks both")
        if self.clients is not None and (ones or "command" in (self.model_extra or {})):
            own = ones[0] if ones else "command"
            raise ValueError(f"a point of several clients has no {own} of its own")
        names = [client.client for client in self.clients or []]
        logs = [client.log for client in self.clients or []]
        for what, values in (("client", names), ("log", logs)):
            if len(set(values)) < len(values):
                raise ValueError(f"two clients have the same {what}")
        return self


class RecordedProbe(RecordedPoint):
    """A rate that a search offered."""

    duration_s: float = Field(gt=0, le=1e9, allow_inf_nan=False, description="How long.")
    step: str = Field(description="The step of the search.")
    round: int = Field(ge=1, le=1000, description="The number of the search's attempt, from 1.")
    began_us: Count = Field(description="When it began, since the start of the search.")
    ended_us: Count = Field(description="When its clients had ended, since the same start.")


class RecordedSearch(RecordPart):
    """A search for the server's capacity."""

    outcome: str = Field(description="Whether the capacity was found; if not, how it ended.")
    reason: str = Field(description="Why it was not found.")
    wall_us: Count = Field(description="How long it took.")
    probes: list[RecordedProbe] = Field(description="Each rate that it offered, in order.")


class RecordedSteps(Spec):
    """How long each step of a trial took, in microseconds, by `measure.context.StepTimes`."""

    testbed: Count = Field(0, description="Hosts opened and their settings made, before `wall_us`.")
    audit: Count = Field(0, description="The audit of the hosts, before and after the load.")
    server_start: Count = Field(0, description="Each start of the server, until it listened.")
    readiness: Count = Field(0, description="From then until it answered.")
    conformance: Count = Field(0, description="Its answers checked.")
    check_for_rest: Count = Field(0, description="The wait until it was idle after the checks.")
    idle_connections: Count = Field(
        0, description="Idle connections opened in addition to the load."
    )
    warm_up: Count = Field(0, description="Load that is not reported.")
    churn: Count = Field(0, description="Connections that came and went until that was steady.")
    offering: Count = Field(
        0, description="The load generators, from start to end: the planned load and late replies."
    )
    drain: Count = Field(0, description="Until the queues were empty and the server answered.")
    compression: Count = Field(0, description="The load generators' reports made compact.")
    system_calls: Count = Field(0, description="Its system calls counted, under a separate load.")
    cool_down: Count = Field(0, description="The pause that the dataset asks for.")
    reports: Count = Field(0, description="Each report read, to verify that there was load.")
    stop: Count = Field(0, description="The server stopped, with all of its processes.")
    machine: Count = Field(0, description="Versions and the machine, for the record.")
    other: Count = Field(0, description="Everything else.")


class TrialRecord(RecordPart):
    """The record of one trial."""

    experiment: str = Field(description="A file in experiments/.")
    server: str = Field(description="A folder in servers/.")
    dataset: str = Field(description="The dataset that it belongs to.")
    n: int = Field(ge=1, le=2**63 - 1, description="Its number among the variant's trials.")
    testbed: str = Field(description="A file in config/testbeds/.")
    spec: RecordedSpec = Field(description="Everything that decides what was measured.")
    schema_version: int = Field(
        1, ge=1, le=SCHEMA_VERSION, description="Which keys it has; 1 if it does not say."
    )
    seed: int | None = optional(
        "What the order of the dataset's trials was drawn with; absent before schema version 2."
    )
    version: str | None = Field(description="What the server's version command printed.")
    started_at: str = Field(
        pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", description="When it began, in UTC."
    )
    descriptors: int = Field(ge=1, le=2**63 - 1, description="How many a process may have open.")
    tools: RecordedTools = Field(
        description="Each tool's package with its version, or its store path; trials measured "
        "before this was recorded have none: measure again."
    )
    outcome: Literal[OUTCOMES] = Field(description="How it ended.")
    reason: str = Field(description="Why it was not measured.")
    points: list[Table] = Field(description="One for each offered rate.")
    wall_us: Count | None = optional("How long it took.")
    offering_us: Count | None = optional("How much of that load was offered.")
    steps_us: RecordedSteps | None = optional(
        "How long each step took; absent in trials measured before this was recorded."
    )
    machine: Machine | None = optional("What a reader must know of the machine to compare.")
    sysctl: Table | None = optional("What was in force on each side.")
    network_settings: dict[str, RecordedNetwork] | None = optional(
        "All of net.ipv4.tcp_* and net.core that can be read on each host; absent in trials "
        "measured before this was recorded."
    )
    cpus: dict[str, list[Count]] | None = optional("The CPUs of each side.")
    hosts: dict[str, RecordedHost] | None = optional(
        "What the audit saw of each host that can change between trials; absent in trials measured "
        "before there was one."
    )
    separate: bool = Field(
        False, description="Whether each host is a separate machine; otherwise all share a machine."
    )
    cpus_note: str | None = optional("What to know where both sides share a CPU.")
    memory: Table | None = optional(
        "The limit of the server's memory, by what it holds, breaches, the peak."
    )
    server_cpu: Table | None = optional(
        "The means by which the server's CPU time was counted; absent in trials that missed the "
        "CPU time of processes that ended."
    )
    server_log: Table | None = optional(
        "How much of what the server printed is kept and was left out."
    )
    stops: list[RecordedStop] | None = optional("How the server was stopped.")
    conformance: list[RecordedCheck] | None = optional(
        "What it was checked for, and what was wrong."
    )
    full_conformance: Table | None = optional(
        "Older trials: which trial of the variant has the checks in full."
    )
    system_calls: RecordedCalls | None = optional(
        "The server's system calls, if they were counted."
    )

    @model_validator(mode="after")
    def _begun_some_day(self) -> Self:
        try:
            datetime.datetime.strptime(self.started_at, "%Y-%m-%dT%H:%M:%SZ")
        except ValueError:
            raise ValueError(f"{self.started_at} is not a valid time") from None
        return self

    @model_validator(mode="after")
    def _each_host_described(self) -> Self:
        for name, host in (self.hosts or {}).items() if self.separate else ():
            for key in ("machine", "interface"):
                if getattr(host, key) is None:
                    raise ValueError(f"separate hosts must be described: {name} has no {key}")
        return self


class StorageRecord(TrialRecord):
    """The record of a trial without load."""

    points: list[StoragePoint] = Field(description="One for each number of messages.")


class LoadRecord(TrialRecord):
    """The record of a trial under load."""

    spec: LoadSpec = Field(description="Everything that decides what was measured.")
    points: list[RecordedPoint] = Field(description="One for each offered rate.")
    search: RecordedSearch | None = optional(
        "The search for the server's capacity, if there was one."
    )

    @model_validator(mode="after")
    def _searched_as_planned(self) -> Self:
        if self.search is not None and not (self.spec.model_extra or {}).get("search"):
            raise ValueError("it has a search, and its specification has none")
        return self

    @model_validator(mode="after")
    def _each_rate_once(self) -> Self:
        rates = [point.offered_rate_rps for point in self.points]
        if len(set(rates)) < len(rates):
            raise ValueError("a rate is listed twice")
        return self


# The keys of a point that has a single client.
OWN = ("log", "command", "client_state")
# The longest delay of one of several clients, while the others offer their parts alone: 1 % of a
# second's load. On a busy machine a client begins tens of milliseconds late.
LATE_US = 10_000
MEASURED_OF_SEVERAL = ("opened", "late_us", "clock_offset_us", "clock_bound_us")


def loads(point: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each client's part in a point: its `client`, and the keys of RecordedClient.

    A single client has the name "", and None for MEASURED_OF_SEVERAL. `point` is from a checked
    record; paths are relative to the record's folder.
    """
    several = point.get("clients")
    if several is None:
        own = {key: point.get(key) for key in OWN}
        return [{"client": "", **own, **dict.fromkeys(MEASURED_OF_SEVERAL)}]
    return [dict.fromkeys(MEASURED_OF_SEVERAL) | client for client in several]


def client_state(point: Mapping[str, Any]) -> str:
    """Return how the load generator ended; if several ended differently, the failures by name."""
    offered = loads(point)
    if len({load["client_state"] for load in offered}) == 1:
        return offered[0]["client_state"]
    badly = [load for load in offered if load["client_state"] != ENDED_WELL]
    return "; ".join(f"{load['client']}: {load['client_state']}" for load in badly)


def last_rate_cps(rates_cps: Sequence[float]) -> float | None:
    """Return the mean of the last WINDOW_ROUNDS rates, or of all if fewer; None without one."""
    return fmean(rates_cps[-WINDOW_ROUNDS:]) if rates_cps else None
