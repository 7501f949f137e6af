"""What a rule of the strict check is, and what it may say: that it saw a fault, or could not look.

Modelled on MLPerf's submission checker: identifiers never change and are never used again, and
each rule names the clause that it enforces, here a section of notebooks/00-method.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from deathmatch.data.strict.evidence import Evidence

# "reject": the dataset does not say what was measured. "warn": it does, but a reader must look at
# these points. "note": a reader who compares must know.
Severity = Literal["reject", "warn", "note"]
SEVERITIES: tuple[Severity, ...] = ("reject", "warn", "note")


@dataclass(frozen=True)
class Seen:
    """A fault: in which file, trial or table, and what was read there."""

    where: str
    what: str


@dataclass(frozen=True)
class Unknown:
    """Where a rule could not look, and why."""

    where: str
    why: str


Check = Callable[["Evidence"], Iterable["Seen | Unknown"]]


@dataclass(frozen=True)
class Rule:
    """One rule; `check` is pure, given the evidence.

    `statement` says what holds in a sound dataset, `remedy` what to do where it does not. Trials
    whose record has an older schema than `since` are not asked.
    """

    id: str
    clause: str
    severity: Severity
    statement: str
    remedy: str
    check: Check
    since: int = 1

    def say(self, evidence: Evidence) -> list[Seen | Unknown]:
        """Return what it saw, and where it could not look, of the trials that it asks."""
        asked = [trial for trial in evidence.trials if trial.schema_version >= self.since]
        return list(self.check(replace(evidence, trials=tuple(asked))))


def rule(
    name: str, clause: str, severity: Severity, statement: str, remedy: str, since: int = 1
) -> Callable[[Check], Rule]:
    """Return a decorator that makes a rule of the function which looks."""
    return lambda check: Rule(name, clause, severity, statement, remedy, check, since)


AGAIN = "remove the trial's folder and run snakemake: it is measured again"
DESIGN, LOAD = "sec-method-design", "sec-method-load"
DATA, THREATS = "sec-method-data", "sec-method-threats"
