"""All rules, and what they find: what refuses a run unless the user accepts it."""

from collections.abc import Iterable, Sequence

from deathmatch.errors import UserError
from deathmatch.hosts.audit import facts, limit_rules, machine_rules, network_rules
from deathmatch.hosts.audit.rule import Finding
from deathmatch.plan import validation_errors

RULES = (*limit_rules.RULES, *network_rules.RULES, *machine_rules.RULES)
SEVERITIES = ("refuse", "warn", "note")


def findings(audit: facts.Audit) -> list[Finding]:
    """Return what is bad in what was read, the worst first."""
    found = [finding for rule in RULES for finding in rule.findings(audit)]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def refusing(found: Iterable[Finding], accepted: Iterable[str] = ()) -> list[Finding]:
    """Return the findings that refuse a run, but for those of accepted rules."""
    spared = {*accepted}
    return [one for one in found if one.severity == "refuse" and one.rule not in spared]


def check_names(names: Iterable[str], where: str) -> None:
    """Raise UserError if there is no rule of one of the names."""
    known = sorted(rule.name for rule in RULES)
    for name in names:
        if name not in known:
            raise UserError(
                f"there is no rule {name!r} of the audit",
                where=where,
                remedy=f"{validation_errors.near(name, known)}known: {', '.join(known)}",
            )


def refusal(found: Sequence[Finding], testbed: str) -> UserError:
    """Return the error that a run is refused for these findings."""
    read = "\n  ".join(f"{one.rule} ({one.host}): {one.read}\n    {one.mend}" for one in found)
    names = ", ".join(sorted({f'"{one.rule}"' for one in found}))
    return UserError(
        f"the audit refuses to measure:\n  {read}",
        where=f"testbed {testbed}",
        remedy=f"mend it, or measure in spite of it: accepts = [{names}] in "
        f"config/testbeds/{testbed}.toml",
    )
