"""Check a dataset strictly: `./shell deathmatch check --strict DATASET`.

Exit status 0: it passed; 3: a rule rejects it; 1: it could not be checked.
"""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from deathmatch.data.inventory import Inventory
from deathmatch.data.strict import report, rules
from deathmatch.data.strict.evidence import gather
from deathmatch.errors import UserError
from deathmatch.plan import files
from deathmatch.plan.root import ROOT


def main(given: argparse.Namespace) -> int:
    """Check the dataset named on the command line; return the exit status."""
    os.chdir(ROOT)
    found = checked(given.dataset)
    if given.json:
        _say(json.dumps(report.as_json(found), indent=2))
    else:
        _say(report.text(found, shutil.get_terminal_size((100, 24)).columns))
    return found.status


def checked(dataset: str) -> rules.Report:
    """Return what all rules say of a dataset, telling on a terminal how far that is.

    From the project's root. Raises UserError if there is no such dataset, or nothing of it.
    """
    spec, held = files.dataset(dataset), Inventory(dataset)
    # Before minutes are spent on it.
    rules.check_names(spec.waives, f"config/datasets/{dataset}.toml, key waives")
    if not held.folder.is_dir() or not any(held.folder.glob("*/*")):
        raise UserError(
            "nothing of it is here", str(held.folder), f"snakemake --config dataset={dataset}"
        )
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("experiments read and recomputed", total=None)

        def progress(done: int, total: int) -> None:
            shown.update(task, completed=done, total=total)

        chosen = [] if spec.frozen else held.chosen
        with gather(Path("data", dataset), spec, held.chosen if spec.frozen else
                    list(held.possible.values()), chosen, progress) as evidence:  # fmt: skip
            return rules.report(evidence)


def _say(text: str) -> None:
    """Print a text, as much of it as the reader wants: `| head` is no mistake."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
