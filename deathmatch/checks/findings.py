"""The findings of checks: their type, the exit status, and the report for a terminal.

The audit of a testbed (`hosts.audit`) and the strict check of a dataset (`data.strict`) yield them.
"""

import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby

PASSED, UNCHECKED, REJECTED = 0, 1, 3
"""The exit statuses."""
TITLES = {
    "reject": "rejected", "refuse": "refused", "unchecked": "could not be checked",
    "waived": "waived", "warn": "warning", "note": "note",
}  # fmt: skip
"""The names of verdicts in reports, the worst first."""
BLOCKING = {"reject", "refuse"}
SHOWN = 5  # findings of one check
LEAST_WIDTH = 60


@dataclass(frozen=True)
class Finding:
    """A check's finding and its place.

    `check` is the name by which a user waives it, `waived` the reason, or "". Severities: "reject"
    and "refuse" are faults; "unchecked" means that the check was not possible; "warn" and "note"
    are for the reader.
    """

    check: str
    severity: str
    where: str
    text: str
    remedy: str = ""
    waived: str = ""

    @property
    def verdict(self) -> str:
        """A key of TITLES: "waived", or the severity."""
        return "waived" if self.waived else self.severity

    def as_json(self) -> dict[str, str]:
        """Return its fields and its verdict, ready for JSON."""
        return asdict(self) | {"verdict": self.verdict}


def sorted_findings(
    findings: Iterable[Finding], waives: Mapping[str, str] | None = None
) -> list[Finding]:
    """Return findings, the worst first; `waives` has the reason for each waived check."""
    reasons = waives or {}
    marked = (replace(found, waived=reasons.get(found.check, "")) for found in findings)
    return sorted(marked, key=lambda found: list(TITLES).index(found.verdict))


def status(findings: Iterable[Finding]) -> int:
    """Return PASSED, REJECTED, or UNCHECKED if a check was not possible."""
    verdicts = {found.verdict for found in findings}
    if verdicts & BLOCKING:
        return REJECTED
    return UNCHECKED if "unchecked" in verdicts else PASSED


def counts(findings: Iterable[Finding]) -> str:
    """Return how many findings have each verdict, such as "1 rejected, 2 note"."""
    verdicts = [found.verdict for found in findings]
    return ", ".join(
        f"{verdicts.count(name)} {title}" for name, title in TITLES.items() if name in verdicts
    )


def report(
    findings: Sequence[Finding], width: int, place: Callable[[str], str] = str
) -> str:  # fmt: skip
    """Return the report of sorted findings: a paragraph for each check, wrapped at `width` columns.

    Remedies are not wrapped, as they hold commands; `place` shortens the place of a finding.
    """
    groups = groupby(findings, key=lambda found: (found.verdict, found.check))
    return "\n\n".join(
        _paragraph(list(group), max(width, LEAST_WIDTH), place) for _, group in groups
    )


def _paragraph(findings: Sequence[Finding], width: int, place: Callable[[str], str]) -> str:
    def wrapped(text: str) -> str:
        return textwrap.fill(
            text, width, initial_indent="  ", subsequent_indent="    ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip

    first = findings[0]
    lines = [f"{TITLES[first.verdict]}: {first.check}, {len(findings)} found"]
    lines += [wrapped(f"{place(found.where)}: {found.text}") for found in findings[:SHOWN]]
    if len(findings) > SHOWN:
        lines.append(f"  and {len(findings) - SHOWN} more")
    if first.waived:
        return "\n".join([*lines, wrapped(f"waived: {first.waived}")])
    remedies = dict.fromkeys(found.remedy for found in findings[:SHOWN] if found.remedy)
    return "\n".join([*lines, *(f"  do: {remedy}" for remedy in remedies)])


def say(text: str) -> None:
    """Print a text; a reader that stops early, such as `| head`, is no error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python flushes the rest at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
