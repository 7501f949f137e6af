"""What a comparison shows: a table on the terminal, a verdict, a chart, files of the numbers."""

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.table import Table

from deathmatch.analysis import ab_result, phrases
from deathmatch.analysis.ab_result import Measured
from deathmatch.paper import display, theme
from deathmatch.paper.charts import ab_chart as charts
from deathmatch.plan.ab_design import Side
from deathmatch.plan.typed import typed

HEADS = ("quantity", "A", "B", "B / A", "interval", "would show")
MEDIANS = ("a_median", "b_median")
# Not the terminal's where that is narrower, as a pipe has none.
WIDTH = 110


def show(
    name: str,
    sides: Sequence[Side],
    experiment: str,
    trials: Sequence[Measured],
    seed: int,
    statistic: str,
    as_json: bool = False,
) -> dict:
    """Print what the trials show, and write it into the dataset's folders; `name` is the dataset's.

    Returns the row of the verdict, which is about the `statistic`, one of `comparison.STATISTICS`.
    """
    rows = ab_result.rows(trials, seed, statistic)
    said = ab_result.verdict(rows.row(0, named=True))
    about = f"A: {sides[0]}; B: {sides[1]}; experiment {experiment}"
    folder = Path("data", name)
    rows.write_csv(folder / "comparison.csv")
    record = {"a": str(sides[0]), "b": str(sides[1]), "experiment": experiment, "seed": seed,
              "verdict": said, "rows": rows.to_dicts()}  # fmt: skip
    written = json.dumps(record, indent=2)
    (folder / "comparison.json").write_text(written + "\n")
    (folder / "comparison.md").write_text(markdown(rows, about, said))
    svg = Path("figures", name, "comparison.svg")
    theme.register()
    svg.write_bytes(display.render(charts.chart(rows, about).to_dict())["svg"])
    if as_json:
        print(written)
        return rows.row(0, named=True)
    console = Console(highlight=False, markup=False, emoji=False)
    console.width = max(console.width, WIDTH)
    print(about, end="\n\n")
    console.print(_table(rows))
    print(f"\n{said} {ab_result.nulls(rows.row(0, named=True))}\n{ab_result.LEVEL}")
    print(ab_result.left_out(trials), end="\n\n")
    paper = typed(f"snakemake paper --config dataset={name}")
    print(
        f"figure:   {svg}\nnumbers:  {folder}/comparison.csv, {folder}/comparison.json\n"
        f"comment:  {folder}/comparison.md\ntrials:   {folder}/{experiment}/\npaper:    {paper}"
    )
    return rows.row(0, named=True)


def markdown(rows: pl.DataFrame, about: str, said: str) -> str:
    """Return the comparison as Markdown, for a comment on a pull request."""
    lines = [f"| {' | '.join(HEADS)} |", f"|{'---|' * len(HEADS)}"]
    lines += [f"| {' | '.join(cells)} |" for cells in map(_cells, rows.iter_rows(named=True))]
    return "\n".join([f"**{said}**", "", about, "", *lines, "", ab_result.LEVEL, ""])


def _table(rows: pl.DataFrame) -> Table:
    table = Table(box=None, pad_edge=False)
    for head in HEADS:
        side = "left" if head == HEADS[0] else "right"
        table.add_column(head, justify=side, no_wrap=True)
    for row in rows.iter_rows(named=True):
        table.add_row(*_cells(row))
    return table


def _cells(row: dict) -> list[str]:
    """Return the texts of a row, under HEADS."""
    low, high = row["low"], row["high"]
    return [
        ab_result.quantity(row),
        *("" if row[key] is None else phrases.number(row[key], 1) for key in MEDIANS),
        "" if row["ratio"] is None else f"{row['ratio']:.3f}",
        "" if low is None else f"{low:.3f} to {high:.3f}",
        "" if row["detectable"] is None else f"{row['detectable'] - 1:.1%}",
    ]
