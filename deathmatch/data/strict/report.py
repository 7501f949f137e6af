"""A strict check's report, as text for a terminal or as JSON for programs."""

import io

from rich import box
from rich.console import Console
from rich.table import Table

from deathmatch.data.strict.rules import PASSED, REJECTED, Report, Result

SHOWN = 5  # findings of one rule
TITLES = {
    "reject": "rejected", "unchecked": "could not be checked", "waived": "waived",
    "warn": "warning", "note": "note",
}  # fmt: skip
VERDICTS = {PASSED: "passed", REJECTED: "rejected"}


def text(report: Report, width: int = 100) -> str:
    """Return the whole report, at most `width` columns wide as far as words allow."""
    out = io.StringIO()
    console = Console(file=out, width=max(width, 60), color_system=None, highlight=False)
    for verdict in TITLES:
        for one in report.of(verdict):
            _tell(console, report.dataset, one)
    counts = Table(box=box.SIMPLE)
    for title in ("verdict", "rules"):
        counts.add_column(title, justify="right" if title == "rules" else "left")
    for verdict, title in {**TITLES, "not asked": "older records", "passed": "passed"}.items():
        if found := report.of(verdict):
            counts.add_row(title, str(len(found)))
    console.print(counts)
    console.print(summary(report))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def summary(report: Report) -> str:
    """Return one line: whether the dataset passed, of how many trials, by how many rules."""
    verdict = VERDICTS.get(report.status, "could not be checked")
    seen = {name: len(report.of(name)) for name in TITLES}
    told = [f"{count} {TITLES[name]}" for name, count in seen.items() if count]
    return (
        f"data/{report.dataset}: {verdict}: {len(report.results)} rules, {report.trials} trials"
        f"{': ' if told else ''}{', '.join(told)}"
    )


def _tell(console: Console, dataset: str, one: Result) -> None:
    rule, verdict = one.rule, one.verdict
    count = len(one.seen) or len(one.unknown)
    table = Table(
        title=f"{TITLES[verdict]}: {rule.id} ({rule.clause}), {count} found",
        title_justify="left", title_style="", caption_justify="left", caption_style="",
        box=box.SIMPLE, show_header=False, pad_edge=False, expand=False,
    )  # fmt: skip
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    lines = [(one.where, one.what) for one in one.seen]
    lines += [(one.where, one.why) for one in one.unknown]
    for where, what in lines[:SHOWN]:
        table.add_row(where.removeprefix(f"data/{dataset}/"), what)
    more = f"and {len(lines) - SHOWN} more\n" if len(lines) > SHOWN else ""
    reason = f"waived: {one.waived}" if verdict == "waived" else f"do: {rule.remedy}"
    table.caption = f"{more}rule: {rule.statement}\n{reason}"
    console.print(table)
    console.print()


def as_json(report: Report) -> dict:
    """Return the whole report, ready for JSON: the verdict, and every rule with what it saw."""
    return {
        "dataset": report.dataset,
        "verdict": VERDICTS.get(report.status, "could not be checked"),
        "trials": report.trials,
        "rules": [
            {
                "id": one.rule.id,
                "clause": one.rule.clause,
                "severity": one.rule.severity,
                "since": one.rule.since,
                "statement": one.rule.statement,
                "remedy": one.rule.remedy,
                "verdict": one.verdict,
                "waived": one.waived or None,
                "older_trials": one.older,
                "found": [{"where": seen.where, "seen": seen.what} for seen in one.seen],
                "unknown": [{"where": each.where, "why": each.why} for each in one.unknown],
            }
            for one in report.results
        ],
    }
