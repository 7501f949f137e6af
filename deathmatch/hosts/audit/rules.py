"""All rules of the audit, and what they say: what refuses a run unless the user accepts it."""

from collections.abc import Iterable

from deathmatch.checks import report as checks
from deathmatch.checks.rule import Rule, check_names
from deathmatch.errors import UserError
from deathmatch.hosts.audit.facts import Audit
from deathmatch.hosts.audit.limit_rules import LIMITS
from deathmatch.hosts.audit.machine_rules import MACHINES
from deathmatch.hosts.audit.network_rules import INTERFACES, LINKS

RULES: tuple[Rule, ...] = tuple(
    rule for group in (LIMITS, LINKS, INTERFACES, MACHINES) for rule in group.rules
)


def ask(audit: Audit, accepted: Iterable[str] = ()) -> checks.Report:
    """Return what every rule says; a rule that is accepted does not refuse a run."""
    waived = {name: "accepted" for name in accepted}
    return checks.Report(tuple(checks.ask(rule, audit, waived.get(rule.id, "")) for rule in RULES))


def check_accepts(names: Iterable[str], where: str) -> None:
    """Raise UserError if a name is not that of a rule."""
    check_names(RULES, names, where, "the audit")


def refusal(report: checks.Report, testbed: str) -> UserError:
    """Return the error that a run is refused for the findings of this report."""
    refused = report.by_verdict["refuse"]
    findings = "\n  ".join(
        f"{result.rule.id} ({finding.where}): {finding.what}\n"
        f"    {finding.remedy or result.rule.remedy}"
        for result in refused
        for finding in result.findings
    )
    names = ", ".join(sorted(f'"{result.rule.id}"' for result in refused))
    return UserError(
        f"the audit refuses to measure:\n  {findings}",
        where=f"testbed {testbed}",
        remedy=f"fix it, or measure in spite of it: accepts = [{names}] in "
        f"config/testbeds/{testbed}.toml",
    )
