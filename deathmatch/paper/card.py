"""The card of a server: one page that shows how it does, against what, and why.

It fetches nothing, is readable on a phone, and prints on two sheets.
"""

import html
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template

from deathmatch.analysis import card as analysis
from deathmatch.analysis import card_facts, phrases
from deathmatch.analysis.card import Row
from deathmatch.analysis.views import Experiment
from deathmatch.data import limits, records
from deathmatch.paper import display, theme
from deathmatch.paper.charts import by_rate
from deathmatch.plan import release
from deathmatch.plan.root import ROOT
from deathmatch.plan.server import Server
from deathmatch.plan.typed import typed
from deathmatch.quantities.quantity import REPLY, Quantity

PAPER = ROOT / "paper" / "source"
NAME = "card.html"
BUSY = 1 / 3
"""The share of the CPUs from which on other work is named: less may be an error of counting."""
CURVES = (
    (REPLY, "reply rate (req/s)"),
    ("connection_time_median_us", "median connection time (µs)"),
)


def write(dataset: str, experiment: str, server: Server) -> Path:
    """Write `paper/<dataset>/card.html`, and the same numbers as `card.json`; return the page."""
    held = Experiment(dataset, experiment)
    made = analysis.rows(held, server.name)
    folder = ROOT / "paper" / dataset
    folder.mkdir(parents=True, exist_ok=True)
    recorded = _records(held, server)
    said = numbers(held, made, recorded, server)
    (folder / "card.json").write_text(json.dumps(said, indent=2) + "\n")
    path = folder / NAME
    path.write_text(page(held, made, server, said, recorded))
    return path.relative_to(ROOT)


def _records(held: Experiment, server: Server) -> list[dict]:
    """Return the records of the server's trials."""
    folder = ROOT / "data" / held.dataset / held.name / server.name
    return [records.read(file) for file in sorted(folder.glob("*/*/trial.json"))]


def numbers(
    held: Experiment, made: Sequence[Row], recorded: Sequence[dict], server: Server
) -> dict:
    """Return what the card shows as what JSON can hold."""
    return {
        "version": release.version(), "experiment": held.name, "dataset": held.dataset,
        "verdict": analysis.verdict(held, made), "standing": analysis.standing(made, held.name),
        "facts": dict(card_facts.facts(held, recorded, server)),
        "servers": [
            {
                "server": row.server, "outcome": row.outcome, "rounds": row.rounds,
                "limit": row.limit, "at_least": row.at_least, "counts": row.counts, **row.values,
                "reply_rate_rps": row.peak.row, "subject_over_it": row.of_subject.row,
            }
            for row in made
        ],
    }  # fmt: skip


def page(
    held: Experiment, made: Sequence[Row], server: Server, said: dict, recorded: Sequence[dict]
) -> str:
    """Return the whole page; `said` is what `numbers` returns."""
    theme.register()
    trials = held.trials.row(0, named=True)
    machine = f"{trials['cpu']}, {trials['cpus']} CPUs, Linux {trials['kernel']}, " \
              f"testbed {trials['testbed']}, version {said['version']}, " \
              f"commit {trials['commit']}"  # fmt: skip
    return Template((PAPER / "card.html").read_text()).substitute(
        title=html.escape(server.title),
        experiment=html.escape(f"{held.name}: {held.spec.title}"),
        verdict=html.escape(said["verdict"]),
        standing=html.escape(said["standing"]),
        charts="\n".join(_charts(held, made)),
        servers=_servers(made),
        wrong=_list(wrong(held, made)),
        facts=_table(["Connections", ""], said["facts"].items()),
        checks=_checks(recorded),
        settings=_list(f"{name}: {text}" for name, text in server.limits.items()),
        machine=html.escape(machine),
        repeat=html.escape(typed(f"deathmatch measure {server.name} --experiment {held.name}")),
        paper=html.escape(typed(f"snakemake paper --config dataset={held.dataset}")),
    )


def wrong(held: Experiment, made: Sequence[Row]) -> list[str]:
    """Return what keeps numbers of the card from counting, a sentence each."""
    said = []
    for row in made:
        if not row.outcome.startswith("measured"):
            said.append(f"{row.title}: {row.outcome}: {row.reason.splitlines()[0]}")
    hollow = held.points.filter(limits.by_harness(held.points))
    if len(hollow):
        share = phrases.part(len(hollow), len(held.points))
        others = analysis.other_work(held)
        busy = others is not None and others > BUSY
        said.append(
            f"{share} points show the limit of the load generator or the testbed"
            + (
                f"; other work took {phrases.percent(others)} % of the CPUs: end it and run this "
                "again."
                if busy
                else ", which has no more CPU time here: they are drawn hollow and do not count."
            )
        )
    rounds = made[0].rounds
    if rounds < 3:
        said.append(
            f"{rounds} of 3 rounds were measured: no interval. Give it more time with --minutes."
        )
    return said


def _charts(held: Experiment, made: Sequence[Row]) -> Iterable[str]:
    """Return each figure as HTML; every point is drawn, those that do not count hollow."""
    order = [row.title for row in made]
    points = held.points
    for column, title in CURVES:
        if column not in points.columns or points[column].null_count() == len(points):
            continue
        chart = by_rate.curves(
            points, column, "title", x_title="offered rate (req/s)", y_title=title, order=order,
            width=420, height=240,
        )  # fmt: skip
        svg = display.render(chart.to_dict())["svg"].decode()
        yield f'<figure role="img" aria-label="{html.escape(title)}">{svg}</figure>'


def _servers(made: Sequence[Row]) -> str:
    """Return the table of servers."""
    heads = [
        "Server", "Highest reply rate (req/s)", "This server over it", "Limit",
        *(_shown(quantity).heading for quantity in analysis.QUANTITIES), "at (req/s)",
    ]  # fmt: skip
    lines = [[
        row.title,
        _marked(row, _peak(row)),
        phrases.brackets(row.of_subject, 2) if row.of_subject.trials else "–",
        row.limit or "unknown",
        *(
            _marked(row, _number(quantity, row.values[quantity.name]))
            for quantity in analysis.QUANTITIES
        ),
        "–" if row.ease_rps is None else phrases.number(row.ease_rps),
    ] for row in made]  # fmt: skip
    return _table(heads, lines)


def _peak(row: Row) -> str:
    if not row.peak.trials:
        return "–"
    return ("≥ " if row.at_least else "") + phrases.brackets(row.peak)


def _marked(row: Row, number: str) -> str:
    """Return a number of the table, in parentheses if it is of points that do not count."""
    return number if row.counts or number == "–" else f"({number})"


def _shown(quantity: Quantity) -> Quantity:
    """Return a quantity in the unit that a reader expects: bytes of memory in MB."""
    return replace(quantity, unit="MB") if quantity.unit == "B" else quantity


def _number(quantity: Quantity, value: float | None) -> str:
    if value is None:
        return "–"
    shown = value / 1e6 if quantity.unit == "B" else value
    return phrases.number(shown) if shown >= 100 else f"{shown:.3g}"


def _checks(recorded: Sequence[dict]) -> str:
    """Return the table of the conformance checks of the first trial."""
    lines = [
        [check["name"], "passed" if check["ok"] else f"failed: {check['seen']}"]
        for record in recorded[:1]
        for check in record.get("conformance", [])
    ]
    return _table(["Check", "Result"], lines) if lines else ""


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(text)}</th>" for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>\n"
        for line in lines
    )
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"


def _list(items: Iterable[str]) -> str:
    made = "".join(f"<li>{html.escape(item)}</li>\n" for item in items)
    return f"<ul>{made}</ul>" if made else "<p>Nothing.</p>"
