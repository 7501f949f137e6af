"""What a rule is, and what it finds: a setting that would spoil a measurement, or bias it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from deathmatch.hosts.audit import facts

# "refuse": what would be measured is not what was meant. "warn": it is, but worse than it could be,
# or biased. "note": a reader who compares machines must know.
Severity = Literal["refuse", "warn", "note"]

# The name of the host, for what concerns the one machine that all of them are on.
MACHINE = "this machine"


@dataclass(frozen=True)
class Seen:
    """What a rule saw: on which host, what was read there, and the command that mends it."""

    host: str
    read: str
    mend: str


class Finding(BaseModel):
    """What a rule found on a host; `source` says where the reason can be read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: str
    severity: Severity
    host: str
    read: str
    why: str
    source: str
    mend: str


Look = Callable[[facts.Audit], Iterable[Seen]]


@dataclass(frozen=True)
class Rule:
    """One rule: its name, how bad it is if it finds something, and why; `look` is pure."""

    name: str
    severity: Severity
    why: str
    source: str
    look: Look

    def findings(self, audit: facts.Audit) -> Iterator[Finding]:
        """Return what it finds; nothing where what it reads is unknown."""
        for seen in self.look(audit):
            yield Finding(
                rule=self.name, severity=self.severity, host=seen.host, read=seen.read,
                why=self.why, source=self.source, mend=seen.mend,
            )  # fmt: skip


def rule(name: str, severity: Severity, why: str, source: str) -> Callable[[Look], Rule]:
    """Return a decorator that makes a rule of the function which looks."""
    return lambda look: Rule(name, severity, why, source, look)


def machines(audit: facts.Audit) -> list[tuple[str, facts.Host, list[int]]]:
    """Return each machine once: how it is called, its facts, and its CPUs that are used."""
    if audit.separate:
        return [(name, host, audit.cpus[name]) for name, host in audit.hosts.items()]
    used = sorted({cpu for cpus in audit.cpus.values() for cpu in cpus})
    return [(MACHINE, next(iter(audit.hosts.values())), used)]


def share(value: float) -> str:
    """Return a share in percent."""
    return f"{100 * value:.3g} %"
