"""All rules, what they say of a dataset, and the verdict: passed, rejected, or not checked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from deathmatch.data.strict import (
    archive_rules,
    environment_rules,
    load_rules,
    origin_rules,
    record_rules,
    schedule_rules,
    server_rules,
    table_rules,
)
from deathmatch.data.strict.evidence import Evidence
from deathmatch.data.strict.rule import Rule, Seen, Unknown
from deathmatch.errors import UserError
from deathmatch.plan import validation_errors

RULES: tuple[Rule, ...] = (
    *record_rules.RULES, *table_rules.RULES, *schedule_rules.RULES, *origin_rules.RULES,
    *server_rules.RULES, *load_rules.RULES, *environment_rules.RULES, *archive_rules.RULES,
)  # fmt: skip
PASSED, REJECTED, UNCHECKED = 0, 3, 1


@dataclass(frozen=True)
class Result:
    """What one rule said; `waived` is the dataset's reason to be shown all the same, or ""."""

    rule: Rule
    seen: tuple[Seen, ...]
    unknown: tuple[Unknown, ...]
    older: int
    """How many trials are not asked, their records being older than the rule."""
    waived: str = ""

    @property
    def verdict(self) -> str:
        """In one word, "passed", "reject", "warn", "note", "waived", "unchecked" or "not asked"."""
        if self.waived and (self.seen or self.unknown):
            return "waived"
        if self.seen:
            return self.rule.severity
        if self.unknown:
            return "unchecked"
        return "not asked" if self.older else "passed"


@dataclass(frozen=True)
class Report:
    """What all rules said of a dataset."""

    dataset: str
    trials: int
    results: tuple[Result, ...]

    def of(self, verdict: str) -> list[Result]:
        """Return the results of that verdict, in the order of the rules."""
        return [one for one in self.results if one.verdict == verdict]

    @property
    def status(self) -> int:
        """The exit status: PASSED, REJECTED, or UNCHECKED if a rule that rejects could not look."""
        if self.of("reject"):
            return REJECTED
        unknown = any(one.rule.severity == "reject" for one in self.of("unchecked"))
        return UNCHECKED if unknown else PASSED


def report(evidence: Evidence) -> Report:
    """Ask every rule; UserError if the dataset waives one that does not exist."""
    waives = evidence.dataset.waives
    check_names(waives, f"config/datasets/{evidence.dataset.name}.toml, key waives")
    results = tuple(_result(rule, evidence, waives) for rule in RULES)
    return Report(evidence.dataset.name, len(evidence.trials), results)


def _result(rule: Rule, evidence: Evidence, waives: Mapping[str, str]) -> Result:
    said = rule.say(evidence)
    return Result(
        rule,
        tuple(one for one in said if isinstance(one, Seen)),
        tuple(one for one in said if isinstance(one, Unknown)),
        sum(trial.schema_version < rule.since for trial in evidence.trials),
        waives.get(rule.id, ""),
    )


def check_names(names: Iterable[str], where: str) -> None:
    """Raise UserError if there is no rule of one of the names."""
    known = sorted(rule.id for rule in RULES)
    for name in names:
        if name not in known:
            raise UserError(
                f"there is no rule {name!r} of check --strict",
                where=where,
                remedy=f"{validation_errors.near(name, known)}known: {', '.join(known)}",
            )
