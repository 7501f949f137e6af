"""The report of a set of rules on its evidence: results, exit status, text for a terminal."""

import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from deathmatch.checks.rule import Finding, Rule, Unknown

PASSED, UNCHECKED, REJECTED = 0, 1, 3
"""Exit statuses."""
TITLES = {
    "reject": "rejected", "refuse": "refused", "unchecked": "could not be checked",
    "waived": "waived", "warn": "warning", "note": "note",
}  # fmt: skip
"""How each verdict is shown, the worst first."""
OTHERS = {"not asked": "older records", "passed": "passed"}
"""The verdicts of rules that have nothing to show."""
BLOCKING = {"reject", "refuse"}
SHOWN = 5  # findings of one rule
LEAST_WIDTH = 60


@dataclass(frozen=True)
class Result:
    """The result of one rule; `waived` is the reason to go on all the same, or ""."""

    rule: Rule
    findings: tuple[Finding, ...]
    unknown: tuple[Unknown, ...]
    waived: str = ""
    older: int = 0
    """How many trials are not asked, their records being older than the rule."""

    @property
    def verdict(self) -> str:
        """A key of TITLES or OTHERS."""
        if self.findings or self.unknown:
            severity = self.rule.severity if self.findings else "unchecked"
            return "waived" if self.waived else severity
        return "not asked" if self.older else "passed"


def ask(rule: Rule, evidence: object, waived: str = "", older: int = 0) -> Result:
    """Return what a rule says of the evidence."""
    seen = list(rule.seen(evidence))
    findings = tuple(finding for finding in seen if isinstance(finding, Finding))
    unknown = tuple(reason for reason in seen if isinstance(reason, Unknown))
    return Result(rule, findings, unknown, waived, older)


@dataclass(frozen=True)
class Report:
    """The results of all rules of a set."""

    results: tuple[Result, ...]

    @property
    def by_verdict(self) -> Mapping[str, list[Result]]:
        """The results of each verdict of TITLES and OTHERS, in the order of the rules."""
        return {
            verdict: [result for result in self.results if result.verdict == verdict]
            for verdict in TITLES | OTHERS
        }

    @property
    def findings(self) -> list[tuple[Rule, Finding]]:
        """All findings with their rules, the worst first."""
        severities = list(TITLES)
        results = sorted(self.results, key=lambda result: severities.index(result.rule.severity))
        return [(result.rule, finding) for result in results for finding in result.findings]

    @property
    def status(self) -> int:
        """PASSED, REJECTED, or UNCHECKED if a rule that rejects could not look."""
        verdicts = self.by_verdict
        if any(verdicts[name] for name in BLOCKING):
            return REJECTED
        unchecked = any(result.rule.severity in BLOCKING for result in verdicts["unchecked"])
        return UNCHECKED if unchecked else PASSED

    def text(self, width: int, place: Callable[[str], str] = str) -> str:
        """Return each result that has something to show, the worst first, a paragraph each.

        At most `width` columns wide, but for commands; `place` shortens where a finding is.
        """
        verdicts = self.by_verdict
        shown = [result for verdict in TITLES for result in verdicts[verdict]]
        return "\n\n".join(_paragraph(result, max(width, LEAST_WIDTH), place) for result in shown)

    def counts(self, verdicts: Iterable[str] = TITLES) -> str:
        """Return how many rules have each of these verdicts, such as "1 rejected, 2 note"."""
        numbers = {verdict: len(results) for verdict, results in self.by_verdict.items()}
        titles = TITLES | OTHERS
        return ", ".join(f"{numbers[name]} {titles[name]}" for name in verdicts if numbers[name])


def _paragraph(result: Result, width: int, place: Callable[[str], str]) -> str:
    def wrapped(text: str) -> str:
        return textwrap.fill(
            text, width, initial_indent="  ", subsequent_indent="    ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip

    rule, verdict = result.rule, result.verdict
    seen = [(finding.where, finding.what) for finding in result.findings]
    seen += [(reason.where, reason.why) for reason in result.unknown]
    lines = [f"{TITLES[verdict]}: {rule.id}, {len(seen)} found"]
    lines += [wrapped(f"{place(where)}: {what}") for where, what in seen[:SHOWN]]
    if len(seen) > SHOWN:
        lines.append(f"  and {len(seen) - SHOWN} more")
    lines.append(wrapped(f"{rule.statement} [{rule.clause}]"))
    if verdict == "waived":
        return "\n".join([*lines, wrapped(f"waived: {result.waived}")])
    own = dict.fromkeys(finding.remedy for finding in result.findings[:SHOWN] if finding.remedy)
    # A command is not broken into lines.
    lines += [f"  do: {remedy}" for remedy in own] or [wrapped(f"do: {rule.remedy}")]
    return "\n".join(lines)


def say(text: str) -> None:
    """Print a text, as much of it as the reader wants: `| head` is not an error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python writes what is left once more as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
