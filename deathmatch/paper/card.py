"""The card: one page that compares a server with yardsticks, or two servers.

It fetches nothing, is readable on a phone, and prints on two sheets. The terminal and a Markdown
file show its table too, and a JSON file has its numbers.
"""

import html
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table

from deathmatch.analysis import card as analysis
from deathmatch.analysis import paired, phrases
from deathmatch.analysis.card import Row
from deathmatch.analysis.paired import Measured
from deathmatch.analysis.views import Experiment
from deathmatch.data import limits, records
from deathmatch.errors import as_typed
from deathmatch.paper import display, theme
from deathmatch.plan import files, measure_design, paths
from deathmatch.plan.measure_design import Side
from deathmatch.plan.paths import ROOT
from deathmatch.quantities.definitions import CPU_PER_REPLY
from deathmatch.quantities.quantity import RATE, REPLY, Quantity

PAPER = ROOT / "paper" / "source"
WIDTH = 1000

Section = tuple[str, str]
"""A heading, and HTML below it."""


@dataclass(frozen=True)
class Card:
    """What a card shows.

    `alarm` are sentences on wrong answers, which stand first and in red. `heads` and `lines` are
    its table, `wrong` sentences about points that do not count; `before` and `after` are the page's
    sections around the table.
    """

    dataset: str
    title: str
    about: str
    alarm: Sequence[str]
    verdict: str
    wrong: Sequence[str]
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    table_title: str
    table_remark: str
    before: Sequence[Section]
    after: Sequence[Section]
    numbers: dict[str, Any]


def show(card: Card, as_json: bool = False) -> None:
    """Write `card.html`, `card.json` and `card.md` into `paper/<dataset>`, and print the card.

    With `as_json`, print what `card.json` has, and nothing else.
    """
    folder = Path("paper", card.dataset)
    (ROOT / folder).mkdir(parents=True, exist_ok=True)
    numbers = {
        "version": paths.version(), "dataset": card.dataset, "alarm": card.alarm,
        "verdict": card.verdict,
    }  # fmt: skip
    written = json.dumps(numbers | card.numbers, indent=2)
    (ROOT / folder / "card.json").write_text(written + "\n")
    (ROOT / folder / "card.md").write_text(markdown(card))
    (ROOT / folder / "card.html").write_text(page(card))
    if as_json:
        print(written)
        return
    print(card.about, end="\n\n")
    print_table(card.alarm, card.heads, card.lines)
    print("", card.verdict, *card.wrong, card.table_remark, sep="\n")
    paper = as_typed(f"snakemake paper --config dataset={card.dataset}")
    print(f"\npaper: {paper}\n{folder}/card.html")


def print_table(
    alarm: Sequence[str], heads: Sequence[str], lines: Sequence[Sequence[str]]
) -> None:  # fmt: skip
    """Print the alarms, in red where the terminal has colours, and a table."""
    # As wide as the table: a pipe has no width, and a terminal breaks lines by itself.
    console = Console(highlight=False, markup=False, emoji=False, width=WIDTH)
    table = Table(box=None, pad_edge=False)
    for number, head in enumerate(heads):
        justify = "right" if number else "left"
        table.add_column(head.replace(" (", "\n("), justify=justify, no_wrap=True)
    for line in lines:
        table.add_row(*line)
    for sentence in alarm:
        console.print(sentence, style="bold red", end="\n\n")
    console.print(table)


def markdown(card: Card) -> str:
    """Return the card's verdict and table as Markdown, for a comment on a pull request."""
    lines = [f"| {' | '.join(cells)} |" for cells in (card.heads, *card.lines)]
    lines.insert(1, f"|{'---|' * len(card.heads)}")
    first = [f"**{sentence}**\n" for sentence in (*card.alarm, card.verdict)]
    return "\n".join([*first, card.about, "", *lines, "", card.table_remark, ""])


def page(card: Card) -> str:
    """Return the card as a whole page of HTML."""
    sections = [
        ("What was wrong", _list(card.wrong)),
        *card.before,
        (card.table_title, f"{_table(card.heads, card.lines)}\n{_small(card.table_remark)}"),
        *card.after,
    ]
    body = "".join(f"<h2>{html.escape(heading)}</h2>\n{content}\n" for heading, content in sections)
    return Template((PAPER / "card.html").read_text()).substitute(
        title=html.escape(card.title),
        about=html.escape(card.about),
        alarm="".join(f'<p class="alarm">{html.escape(said)}</p>\n' for said in card.alarm),
        verdict=html.escape(card.verdict),
        body=body,
    )


def of_subject(held: Experiment, sides: Sequence[Side], rounds: int, command: str) -> Card:
    """Return the card of a server and its yardsticks; the first of the sides is the server.

    `rounds` is how many are wanted, `command` what was typed.
    """
    server = files.server(sides[0].server)
    made = analysis.rows(held, server.name)
    own = [record for record in recorded(held) if record["server"] == server.name]
    facts = dict(analysis.facts(held, own, server))
    heads, lines = servers_table(held, made)
    settings = _list(f"{name}: {text}" for name, text in server.limits.items())
    theme.register()
    alarms = list(analysis.alarms(held).values())
    # What an echo costs depends on how many messages come at once.
    pace = "" if measure_design.searches(held.name) else f" {phrases.pacing(held.points)}"
    return Card(
        held.dataset, server.title, f"{held.name}: {held.spec.title}", alarms,
        analysis.verdict(held, made), wrong(held, made, rounds),
        heads, lines, "Compared with yardsticks of the same run",
        "Intervals over rounds; ratios within rounds, of this server's CPU over the other's. "
        "\">\": the client came to its limit first. Numbers in parentheses come from points that "
        f"do not count.{pace}",
        before=[("Rate, cost and latency", (
            f'<div class="figures">{"".join(_charts(held, made))}</div>\n'
            + _small("Medians over rounds. Hollow points show the limit of the load generator, "
                     "not of the server.")
        ))],
        after=[
            ("Connections", _table(["Connections", ""], facts.items(), "wide facts")),
            ("Checked before the load", _checks(own)),
            ("Declared settings and limits", settings),
            _repeat(held, command),
        ],
        numbers={
            "experiment": held.name, "facts": facts, "rate_rps": analysis.common_rps(held),
            "servers": [_numbers(held, row) for row in made],
        },
    )  # fmt: skip


def _numbers(held: Experiment, row: Row) -> dict[str, Any]:
    """Return a row of the card as JSON has it."""
    values = {}
    for of, value in zip(analysis.columns(held), row.values):
        paced = "" if of.opening == analysis.UNDER_WAY else f"_opening_{of.opening}"
        values[f"{of.quantity.name}{paced}"] = value
    return {
        "server": row.server, "outcome": row.outcome, "rounds": row.rounds, "counts": row.counts,
        CPU_PER_REPLY.name: row.cost.row, "subject_over_it": row.over_it.row,
        "capacity_rps": row.capacity.rate.row, "capacity_is_bound": row.capacity.bound,
        "capacity_reason": row.capacity.reason, **values,
    }  # fmt: skip


def of_pair(
    held: Experiment, sides: Sequence[Side], trials: Sequence[Measured], rows: pl.DataFrame,
    seed: int, command: str,
) -> Card:  # fmt: skip
    """Return the card of two variants compared; `rows` are those of `paired.rows`.

    `command` is what was typed.
    """
    first = rows.row(0, named=True)
    about = f"A: {sides[0]}; B: {sides[1]}; experiment {held.name}"
    return Card(
        held.dataset, f"{sides[0]} and {sides[1]}", about,
        list(analysis.alarms(held).values()),
        paired.verdict(first), [paired.left_out(trials)],
        ["quantity", "A", "B", "B / A", "interval", "would show"],
        [_pair_line(row) for row in rows.iter_rows(named=True)], "Quantities", paired.LEVEL,
        before=[],
        after=[_repeat(held, command)],
        numbers={
            "a": str(sides[0]), "b": str(sides[1]), "experiment": held.name, "seed": seed,
            "rows": rows.to_dicts(),
        },
    )  # fmt: skip


def _pair_line(row: dict) -> list[str]:
    low, high = row["low"], row["high"]
    return [
        paired.quantity(row),
        *("" if row[key] is None else phrases.number(row[key], 1)
          for key in ("a_median", "b_median")),
        "" if row["ratio"] is None else f"{row['ratio']:.3f}",
        "" if low is None else f"{low:.3f} to {high:.3f}",
        "" if row["detectable"] is None else f"{row['detectable'] - 1:.1%}",
    ]  # fmt: skip


def recorded(held: Experiment) -> list[dict]:
    """Return the records of an experiment's trials."""
    folder = ROOT / "data" / held.dataset / held.name
    return [records.read(file) for file in sorted(folder.glob("*/*/*/trial.json"))]


def _repeat(held: Experiment, command: str) -> Section:
    """Return the section that names the machine, the day, the code and the command."""
    known = held.trials.drop_nulls("commit")
    trial = (known if len(known) else held.trials).row(0, named=True)
    commit = trial["commit"] or "unknown"
    name = commit.removesuffix("-dirty")
    machine = (
        f"{trial['cpu']}, {trial['cpus']} CPUs, Linux {trial['kernel']}, testbed "
        f"{trial['testbed']}, version {paths.version()}, commit {name}"
        f"{' with uncommitted changes' if commit != name else ''}, measured "
        f"{trial['started_at']:%Y-%m-%d}."
    )
    paper = as_typed(f"snakemake paper --config dataset={held.dataset}")
    return (
        "How to repeat it",
        (
            f"<p>{html.escape(machine)}</p>\n<p><code>{html.escape(command)}</code></p>\n"
            f"<p><code>{html.escape(paper)}</code> writes the whole paper of these trials. "
            ".github/CONTRIBUTING.md says how to cite and submit them.</p>"
        ),
    )


def wrong(held: Experiment, made: Sequence[Row], wanted: int) -> list[str]:
    """Return why numbers of the card do not count, a sentence for each reason."""
    said = []
    for row in made:
        if row.failed:
            said.append(f"{row.title}: {row.outcome}: {row.reason.splitlines()[0]}")
    hollow = held.points.filter(limits.by_harness(held.points))
    if len(hollow):
        share = phrases.part(len(hollow), len(held.points))
        said.append(
            f"{share} points do not count: they show the limit of the load generator or the testbed"
        )
    others = analysis.other_work(held)
    if others is not None and others > analysis.BUSY:
        busy = phrases.percent(others)
        said.append(f"Other work took {busy} % of the CPUs: end it and run this again.")
    rounds = made[0].rounds
    if rounds < wanted and not made[0].failed:
        said.append(
            f"{rounds} of {wanted} rounds were measured: no interval. Give it more time with "
            "--minutes."
        )
    return said


STEP = 1.1
"""Rates of a search that differ by less are one point of a curve."""


def _charts(held: Experiment, made: Sequence[Row]) -> Iterable[str]:
    """Return each figure as HTML; what the client limited is hollow."""
    order = [row.title for row in made]
    if measure_design.searches(held.name):
        frame, x, x_title = _by_rate(held), RATE, "offered rate (req/s)"
        curves = {REPLY: "reply rate (req/s)", CPU_PER_REPLY.name: "CPU per reply (µs)"}
    else:
        pace = held.seconds.filter(opening=analysis.UNDER_WAY, quantity="latency")
        frame = pace.with_columns(client_limited=pl.lit(False))
        x, x_title = "since_start_s", "time since the first connection (s)"
        curves = {"p50_us": "median latency (µs)", "p95_us": "95th percentile of the latency (µs)"}
    for column, title in curves.items():
        if not frame[column].count():
            continue
        own, hollow = (
            frame.filter(pl.col("client_limited") == limited)
            .group_by("title", x, maintain_order=True)
            .agg(pl.col(column).median())
            .sort("title", x)
            for limited in (False, True)
        )
        chart = theme.lines(
            own, x, column, "title", limited=hollow, log_x=x == RATE, log_y=True, x_title=x_title,
            y_title=title, order=order, width=420, height=240,
        )  # fmt: skip
        svg = display.render(chart.to_dict())["svg"].decode()
        yield f'<figure role="img" aria-label="{html.escape(title)}">{svg}</figure>'


def _by_rate(held: Experiment) -> pl.DataFrame:
    """Return the points of sweeps and searches; rates less than STEP apart are made one."""
    cost = CPU_PER_REPLY.of_trial.of_point().alias(CPU_PER_REPLY.name)
    wanted = ["title", RATE, REPLY, cost, "client_limited"]
    both = pl.concat([held.points.select(wanted), held.probes.select(wanted)])
    step = math.log(STEP)
    return both.with_columns(
        ((pl.col(RATE).log() / step).round() * step).exp().round().cast(pl.Int64)
    )


def servers_table(held: Experiment, made: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the lines of the table of servers."""
    rated = measure_design.searches(held.name)
    heads = [
        "Server", f"CPU per {'reply' if rated else 'echo'} (µs)", "Ratio to it",
        *(["Capacity (req/s)"] if rated else []),
        *(of.heading for of in analysis.columns(held)),
    ]  # fmt: skip
    lines = [[
        row.title,
        analysis.marked(row, phrases.brackets(row.cost, 1) if row.cost.trials else "–"),
        phrases.brackets(row.over_it, 2) if row.over_it.trials else "–",
        *([_capacity(row)] if rated else []),
        *(
            analysis.marked(row, _number(of.quantity, value))
            for of, value in zip(analysis.columns(held), row.values)
        ),
    ] for row in made]  # fmt: skip
    return heads, lines


def _capacity(row: Row) -> str:
    """Return a capacity as a cell; of a bound, "> 22 000"."""
    if not row.capacity.rate.trials:
        return "–"
    if row.capacity.bound:
        return f"> {phrases.number(row.capacity.rate.estimate)}"
    return phrases.brackets(row.capacity.rate)


def _number(quantity: Quantity, value: float | None) -> str:
    """Return a value as a cell: bytes of memory in MB."""
    if value is None:
        return "–"
    shown = value / 1e6 if quantity.unit == "B" else value
    return phrases.number(shown) if shown >= 100 else f"{shown:.3g}"


def _checks(recorded: Sequence[dict]) -> str:
    """Return the table of the conformance checks of the first trial."""
    lines = [
        [check["name"], "as asked" if check["ok"] else f"failed: {check['seen']}"]
        for check in (recorded[0] if recorded else {}).get("conformance", [])
    ]
    return _table(["Check", "Result"], lines) if lines else ""


def _table(
    heads: Sequence[str], lines: Iterable[Sequence[str]], classes: str = "wide"
) -> str:  # fmt: skip
    head = "".join(f"<th>{html.escape(text)}</th>" for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>\n"
        for line in lines
    )
    return (
        f'<div class="{classes}"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def _small(text: str) -> str:
    return f"<p><small>{html.escape(text)}</small></p>"


def _list(items: Iterable[str]) -> str:
    made = "".join(f"<li>{html.escape(item)}</li>\n" for item in items)
    return f"<ul>{made}</ul>" if made else "<p>Nothing.</p>"
