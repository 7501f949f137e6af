"""What a check found: a finding's type, the exit status, and the text for a terminal.

The audit of a testbed (`hosts.audit`) and the strict check of a dataset (`data.strict`) are plain
functions that yield findings.
"""

import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby

PASSED, UNCHECKED, REJECTED = 0, 1, 3
"""Exit statuses."""
TITLES = {
    "reject": "rejected", "refuse": "refused", "unchecked": "could not be checked",
    "waived": "waived", "warn": "warning", "note": "note",
}  # fmt: skip
"""How each verdict is shown, the worst first."""
BLOCKING = {"reject", "refuse"}
SHOWN = 5  # findings of one check
LEAST_WIDTH = 60


@dataclass(frozen=True)
class Finding:
    """What a check found, and where.

    `check` is the name by which a user waives it, `waived` the reason, or "". Severities:
    "reject" and "refuse" are faults; "unchecked", where a fault could not be looked for; "warn" and
    "note", what a reader must look at or know.
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
    """Return findings, the worst first; those whose check `waives` names have its reason."""
    reasons = waives or {}
    marked = (replace(found, waived=reasons.get(found.check, "")) for found in findings)
    return sorted(marked, key=lambda found: list(TITLES).index(found.verdict))


def status(findings: Iterable[Finding]) -> int:
    """Return PASSED, REJECTED, or UNCHECKED if something could not be looked at."""
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
    """Return sorted findings, a paragraph for those of each check, in lines of `width` columns.

    Commands are not broken; `place` shortens where a finding is.
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
    # A command is not broken into lines.
    return "\n".join([*lines, *(f"  do: {remedy}" for remedy in remedies)])


def say(text: str) -> None:
    """Print a text, as much of it as the reader wants: `| head` is not an error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python writes what is left once more as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
