"""Is a dataset fit to be compared with others? `snakemake check_dataset --config dataset=NAME`.

The rules of `data.strict` that records and tables alone can answer; with `--strict`, every table is
recomputed from the raw logs and all rules are asked. Exit status 0: it passed; 3: a rule rejects
it; 1: it could not be checked.
"""

import argparse
import json
import shutil

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from deathmatch.checks.report import say
from deathmatch.data.inventory import Inventory
from deathmatch.data.strict import rules
from deathmatch.data.strict.evidence import gather
from deathmatch.data.strict.report import Report
from deathmatch.errors import UserError
from deathmatch.plan import files, selection
from deathmatch.plan.selection import Choice


def main(given: argparse.Namespace) -> int:
    """Check the dataset named on the command line; return the exit status."""
    choice = selection.given(given)
    report = checked(given.dataset, choice, strict=given.strict)
    if given.json:
        say(json.dumps(report.as_json(), indent=2))
    else:
        say(report.whole_text(shutil.get_terminal_size((100, 24)).columns))
        if not choice.whole:
            say(f"looked for the trials that {' '.join(choice.settings)} chooses")
    return report.status


def checked(dataset: str, choice: Choice, *, strict: bool) -> Report:
    """Return what the rules say of a dataset, and show the progress on a terminal.

    From the project's root. Trials that are not chosen may be missing; those that are there are
    looked at all the same. Raises UserError if there is no such dataset, or nothing of it.
    """
    spec, held = files.dataset(dataset), Inventory(dataset)
    # Before minutes are spent on it.
    rules.check_waives(spec)
    if not held.folder.is_dir() or not any(held.folder.glob("*/*")):
        raise UserError(
            "nothing of it is here", str(held.folder), f"snakemake --config dataset={dataset}"
        )
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("experiments read", total=None)

        def progress(done: int, total: int) -> None:
            shown.update(task, completed=done, total=total)

        chosen = [] if spec.frozen else Inventory(dataset, choice).chosen
        possible = held.chosen if spec.frozen else list(held.possible.values())
        with gather(held.folder, spec, possible, chosen, progress, recompute=strict) as evidence:
            return rules.ask(evidence, rules.RULES if strict else rules.QUICK)
