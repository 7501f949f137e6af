"""An audit as text for a terminal, or as JSON: what was read, what is unknown, what was found."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import zip_longest

from deathmatch.checks.report import LEAST_WIDTH, Report
from deathmatch.hosts.audit import fact
from deathmatch.hosts.audit.facts import Audit, Host
from deathmatch.hosts.audit.formats import cpu_ranges

GAP = 3  # at least so many columns between two columns of the table
LEAST_COLUMN = 20
UNIT = re.compile("_(hz|s|bytes|bit_per_s)$")


def text(audit: Audit, report: Report, width: int = 100, more: Sequence[str] = ()) -> str:
    """Return the whole report, at most `width` columns wide as far as words allow.

    `more` are lines before the summary.
    """
    width = max(width, LEAST_WIDTH)
    hosts = {name: dict(_rows(host)) for name, host in audit.hosts.items()}
    for name, rows in hosts.items():
        rows["CPUs used"] = cpu_ranges(audit.cpus[name])
    links = {f"{client} to server": dict(fact.rows(link)) for client, link in audit.links.items()}
    parts = [_table(hosts, width), _table(links, width), _unknown(audit, width)]
    wrapped = [textwrap.fill(line, width, break_on_hyphens=False) for line in more]
    return "\n\n".join(
        part for part in (*parts, report.text(width), *wrapped, summary(report)) if part
    )


def summary(report: Report) -> str:
    """Return one line: whether the testbed is fit, and how many rules have each verdict."""
    refused = len(report.by_verdict["refuse"])
    verdict = "fit to measure" if not refused else (
        f"not fit to measure ({refused} refused; in spite of it: --accept RULE, or `accepts` in "
        "the testbed's file)"
    )  # fmt: skip
    counts = report.counts()
    return f"{verdict}: {counts}" if counts else verdict


def as_json(audit: Audit, report: Report, accepted: Sequence[str]) -> dict:
    """Return the audit, ready for JSON, with every finding, the worst first."""
    return {
        "audit": asdict(audit),
        "findings": [
            {
                "rule": rule.id,
                "severity": rule.severity,
                "host": finding.where,
                "read": finding.what,
                "why": rule.statement,
                "source": rule.clause,
                "remedy": finding.remedy or rule.remedy,
            }
            for rule, finding in report.findings
        ],
        "accepted": list(accepted),
    }


def _rows(host: Host) -> Iterator[tuple[str, str]]:
    for part in (host, *host.parts.values()):
        yield from fact.rows(part)


def _table(columns: Mapping[str, Mapping[str, str]], width: int) -> str:
    """Return a table of {column: {row: text}}, all with the same rows; "" without a column."""
    if not columns:
        return ""
    rows = {"": list(columns)}
    for title in next(iter(columns.values())):
        rows[title] = [texts[title] for texts in columns.values()]
    first = max(map(len, rows)) + GAP
    column = max(LEAST_COLUMN, (width - first) // len(columns))
    lines = []
    for title, cells in rows.items():
        wrapped = [textwrap.wrap(cell, column - GAP) for cell in cells]
        for number, line in enumerate(zip_longest(*wrapped, fillvalue="")):
            shown = "".join(part.ljust(column) for part in line)
            lines.append(((title if number == 0 else "").ljust(first) + shown).rstrip())
    return "\n".join(lines)


def _unknown(audit: Audit, width: int) -> str:
    """Return what is unknown, each reason once."""
    names: dict[str, list[str]] = {}
    for host in audit.hosts.values():
        for part in (host, *host.parts.values()):
            for name, reason in part.unknown.items():
                title = UNIT.sub("", name).replace("_", " ")
                if title not in names.setdefault(reason, []):
                    names[reason].append(title)
    lines = [f"unknown: {', '.join(titles)} ({reason})" for reason, titles in names.items()]
    return "\n".join(textwrap.fill(line, width, subsequent_indent="  ") for line in lines)
