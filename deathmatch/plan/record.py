"""The record of one trial, `trial.json`: what every record must have to be read."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from deathmatch.plan.spec import Spec

MEASURED = ("measured", "measured, with failures")
OUTCOMES = (*MEASURED, "not built", "did not start", "answers wrongly")

Table = dict[str, Any]


class RecordPart(Spec):
    """A part of a record, which may hold more than is checked here."""

    model_config = ConfigDict(extra="allow")


class RecordedSpec(RecordPart):
    """Everything that decides what was measured."""

    factors: Table = Field(description="The variant.")
    client: str | None = Field(None, description="The load generator.")
    measures: str | None = Field(None, description="What was measured without load.")
    load: Table = Field(description="What the client sent.")
    server_sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Of the server's sources.")


class RecordedTools(RecordPart):
    """Each tool's package with its version, or its store path."""

    __pydantic_extra__: dict[str, dict[str, str]]

    harness: dict[str, str] = Field(description="What every trial runs on.")
    server: dict[str, str] = Field(description="The server's programs and packages.")


class Machine(RecordPart):
    """What a reader must know of the machine to compare."""

    cpu: Any = Field(description="Its model.")
    cpus: Any = Field(description="How many it has.")
    memory_bytes: Any = Field(description="Its memory.")
    kernel: Any = Field(description="The release of Linux.")
    os: Any = Field(description="The distribution.")
    toolchain: Any = Field(description="Where the tools come from.")
    commit: Any = Field(description="The version of this project.")


class RecordedPoint(RecordPart):
    """One rate as it was offered."""

    offered_rate_rps: int = Field(description="The rate.")
    log: str = Field(description="The load generator's report, a file beside the record.")
    fresh_start: bool = Field(description="Whether the server was started for this rate.")
    server_state: str = Field(description='"ran", or how the server ended.')
    client_state: str = Field(description="How the load generator ended.")


class TrialRecord(RecordPart):
    """The record of one trial."""

    experiment: str = Field(description="A file in experiments/.")
    server: str = Field(description="A folder in servers/.")
    dataset: str = Field(description="The dataset that it belongs to.")
    n: int = Field(ge=1, description="Its number among the variant's trials.")
    testbed: str = Field(description="A file in config/testbeds/.")
    spec: RecordedSpec = Field(description="Everything that decides what was measured.")
    version: Annotated[str | None, Field(description="What the server's version command printed.")]
    started_at: str = Field(
        pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", description="When it began, in UTC."
    )
    descriptors: int = Field(ge=1, description="How many a process may have open.")
    tools: RecordedTools = Field(
        description="Each tool's package with its version, or its store path; trials measured "
        "before this was recorded have none: measure again."
    )
    outcome: Literal[OUTCOMES] = Field(description="How it ended.")
    reason: str = Field(description="Why it was not measured.")
    points: list[Table] = Field(description="One for each offered rate.")
    wall_us: int | None = Field(None, ge=0, description="How long it took.")
    offering_us: int | None = Field(None, ge=0, description="How much of that load was offered.")
    machine: Machine | None = Field(
        None, description="What a reader must know of the machine to compare."
    )
    sysctl: Table | None = Field(None, description="What was in force on each side.")
    cpus: Table | None = Field(None, description="The CPUs of each side.")
    hosts: dict[str, Table] | None = Field(
        None,
        description="What the audit saw of each host that can change between trials; absent in "
        "trials measured before there was one.",
    )
    separate: bool = Field(
        False, description="Whether each host is a machine of its own; else all are on one."
    )
    cpus_note: str | None = Field(None, description="What to know where both sides share a CPU.")
    memory: Table | None = Field(
        None, description="The limit of the server's memory, by what it holds, breaches, the peak."
    )
    server_log: Table | None = Field(
        None, description="How much of what the server printed is kept and was left out."
    )
    stops: list[Any] | None = Field(None, description="How the server was stopped.")
    conformance: list[Any] | None = Field(
        None, description="What it was checked for, and what was wrong."
    )


class LoadRecord(TrialRecord):
    """The record of a trial under load."""

    points: list[RecordedPoint] = Field(description="One for each offered rate.")


def loads(point: Table) -> list[Table]:
    """Return what each client of a point left: log, command, state."""
    return point.get("clients") or [point]
