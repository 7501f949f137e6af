#!/usr/bin/env python3
"""Say how likely each claim's design decides it, by the spread of the dataset reference.

    ./shell python bench/power.py

Writes `data/planned/power.csv`: for each claim with a design, then and now, what the dataset had,
how many trials the design asks for, and how often as many, drawn as those were, decide the claim.
Takes a minute of CPU time.
"""

import sys
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deathmatch.analysis import power  # noqa: E402

DATASET, SEED = "reference", 43
FILE = ROOT / "data" / "planned" / "power.csv"


def main() -> int:
    """Write the table, and print how many chances are below four in five."""
    table = power.table(DATASET, SEED)
    FILE.parent.mkdir(exist_ok=True)
    table.with_columns(pl.col("spread", "distance", "chance").round(3)).write_csv(FILE)
    known = table["chance"].drop_nulls()
    print(f"{FILE.relative_to(ROOT)}: {len(table)} verdicts, of {len(known)} the chance is known; "
          f"{(known < 0.8).sum()} of these are below 0.8")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
