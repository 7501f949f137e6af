"""All rules of the strict check, and what they say of a dataset."""

from collections.abc import Iterable
from dataclasses import replace

from deathmatch.checks import report as checks
from deathmatch.checks.rule import Rule, check_names
from deathmatch.data.strict.archive_rules import ARCHIVE
from deathmatch.data.strict.environment_rules import ENVIRONMENT
from deathmatch.data.strict.evidence import Evidence
from deathmatch.data.strict.load_rules import LOADS
from deathmatch.data.strict.origin_rules import ORIGIN
from deathmatch.data.strict.record_rules import RECORD
from deathmatch.data.strict.report import Report
from deathmatch.data.strict.schedule_rules import SCHEDULE
from deathmatch.data.strict.server_rules import SERVER
from deathmatch.data.strict.table_rules import TABLE, unusable_points
from deathmatch.plan.dataset import Dataset

GROUPS = (RECORD, TABLE, SCHEDULE, ORIGIN, SERVER, LOADS, ENVIRONMENT, ARCHIVE)
RULES: tuple[Rule, ...] = tuple(rule for group in GROUPS for rule in group.rules)
_QUICK = {
    "DM-JSON", "DM-RECORD", "DM-TABLES", "DM-ROWS", "DM-COUNTERS", "DM-MISSING", "DM-UNPLANNED",
    "DM-SPEC", "DM-TOOLS", "DM-TOOLS-NAMED", "DM-MACHINE", "DM-PRIVATE", "DM-USABLE",
}  # fmt: skip
QUICK = tuple(rule for rule in RULES if rule.id in _QUICK)
"""The rules that are asked of records and tables, without raw logs."""


def check_waives(dataset: Dataset) -> None:
    """Raise UserError if the dataset waives a rule that does not exist."""
    where = f"config/datasets/{dataset.name}.toml, key waives"
    check_names(RULES, dataset.waives, where, "check --strict")


def ask(evidence: Evidence, rules: Iterable[Rule] = RULES) -> Report:
    """Return what the rules say; UserError if the dataset waives one that does not exist.

    A rule is asked of the trials whose record is not older than it.
    """
    check_waives(evidence.dataset)
    results = []
    for rule in rules:
        asked = tuple(trial for trial in evidence.trials if trial.schema_version >= rule.since)
        waived = evidence.dataset.waives.get(rule.id, "")
        older = len(evidence.trials) - len(asked)
        results.append(checks.ask(rule, replace(evidence, trials=asked), waived, older))
    counts = unusable_points(evidence).values()
    return Report(
        tuple(results), evidence.dataset.name, len(evidence.trials),
        points=sum(points for _, points in counts),
        unusable=sum(unusable for unusable, _ in counts),
    )  # fmt: skip
