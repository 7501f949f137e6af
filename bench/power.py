#!/usr/bin/env python3
"""Say how likely the datasets that are planned for claims decide each, by `reference`'s spread.

    ./shell python bench/power.py

Writes `data/planned/power.csv`: for each claim with a design, then and now, what `reference` had,
how many trials the planned datasets have, how often as many, drawn as the earlier ones were, decide
the claim, and how long the trials of its designs take alone. Takes a minute of CPU time.
"""

import sys
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deathmatch.analysis import power  # noqa: E402
from deathmatch.plan import designs, matrix  # noqa: E402
from deathmatch.run import progress  # noqa: E402

EARLIER, SEED = "reference", 43
FILE = ROOT / "data" / "planned" / "power.csv"


def alone() -> pl.DataFrame:
    """Return how long the trials of each claim's designs take by the plan, were they alone, s."""
    chosen = designs.designs()
    took_s = {
        claim: sum(map(progress.seconds, designs.planned(d for d in chosen if d.claim == claim)))
        for claim in dict.fromkeys(design.claim for design in chosen)
    }
    return pl.DataFrame({"claim": [*took_s], "alone_s": [*map(round, took_s.values())]})


def main() -> int:
    """Write the table, and print how many chances are below four in five."""
    trials = [trial for dataset in designs.unmeasured() for trial in matrix.trials(dataset)]
    table = power.table(EARLIER, trials, SEED).join(alone(), on="claim", maintain_order="left")
    FILE.parent.mkdir(exist_ok=True)
    table.with_columns(pl.col("spread", "distance", "chance").round(3)).write_csv(FILE)
    known = table["chance"].drop_nulls()
    print(f"{FILE.relative_to(ROOT)}: {len(table)} verdicts, of {len(known)} the chance is known; "
          f"{(known < 0.8).sum()} of these are below 0.8")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
