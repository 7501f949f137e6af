"""List the servers that could not be measured: `./shell deathmatch failures DATASET`."""

import argparse
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from deathmatch.builds import server_commands
from deathmatch.data import records
from deathmatch.data.inventory import Inventory
from deathmatch.errors import as_typed
from deathmatch.plan import paths, selection
from deathmatch.plan.record import MEASURED, NOT_BUILT
from deathmatch.plan.selection import Choice
from deathmatch.plan.trial import Trial


@dataclass(frozen=True)
class Failure:
    """Why a server could not be measured: its first such trial, and how many there are."""

    outcome: str
    reason: str
    folder: str
    trials: int

    @property
    def number(self) -> str:
        """The number of trials, such as "1 trial"."""
        return f"{self.trials} trial{'' if self.trials == 1 else 's'}"


def main(given: argparse.Namespace) -> int:
    """Print each server and variant that could not be measured; return 1 if there is one."""
    chosen = selection.given(given)
    if given.retry:
        print(f"to be measured again: {', '.join(forget(given.dataset, chosen)) or 'none'}")
        return 0
    failed = failures(given.dataset, chosen)
    if failed:
        print(report(failed, retry(given.dataset, chosen)), file=sys.stderr)
    else:
        print(f"data/{given.dataset}: every server that was tried could be measured")
    return 1 if failed else 0


def report(failed: dict[str, Failure], again: str) -> str:
    """Return the text on `failures`; `again` is the command that removes their records."""
    return "\n".join(
        f"deathmatch: {paths.folder(name)}: {failure.outcome}, in {failure.number}:\n"
        + "".join(f"    {line}\n" for line in failure.reason.splitlines()[-8:])
        + f"  fix {paths.folder(name)} and run again; to try it again unchanged: {again}, then run"
        " again"
        for name, failure in failed.items()
    )


def retry(dataset: str, chosen: Choice) -> str:
    """Return the command that removes the records of what could not be measured."""
    return as_typed(" ".join(["snakemake retry --config", f"dataset={dataset}", *chosen.settings]))


def failures(dataset: str, chosen: Choice) -> dict[str, Failure]:
    """Return the failure of each server that could not be measured, by name."""
    by_server: dict[str, list[tuple[Trial, dict]]] = {}
    for trial, record in _unmeasured(dataset, chosen):
        by_server.setdefault(trial.server.name, []).append((trial, record))
    return {
        name: Failure(record["outcome"], record["reason"], str(trial.path), len(failed))
        for name, failed in by_server.items()
        for trial, record in failed[:1]
    }


def forget(dataset: str, chosen: Choice) -> list[str]:
    """Remove the trials that could not be measured and the failed builds; return the servers."""
    names = set()
    for trial, record in _unmeasured(dataset, chosen):
        shutil.rmtree(trial.path)
        names.add(trial.server.name)
        if record["outcome"] == NOT_BUILT:
            (server_commands.build_dir(trial.server.name) / "build.json").unlink(missing_ok=True)
    return sorted(names)


def _unmeasured(dataset: str, chosen: Choice) -> list[tuple[Trial, dict]]:
    files = Inventory(dataset, chosen).measured
    ordered = [(trial, records.read(files[trial])) for trial in sorted(files, key=files.get)]
    return [(trial, record) for trial, record in ordered if not measured(record)]


def measured(record: dict) -> bool:
    """Return whether the server could be measured, even if it failed under load."""
    return record["outcome"] in MEASURED


def line(record: dict, path: Path) -> str:
    """Return the outcome and where to look, given the trial's folder `path`.

    Such as "did not start: ended before it listened (exit status 1); see <log>".
    """
    reason = reason_of(record)
    text = f"{record['outcome']}{': ' if reason else ''}{reason}"
    if record["outcome"] == NOT_BUILT:
        return f"{text}; see build/servers/{record['server']}/build.log"
    if left_out_bytes := record.get("server_log", {}).get("left_out_bytes"):
        text += f"; its log lacks {left_out_bytes / 1e6:,.0f} MB of what it printed"
    in_record = not reason or record["outcome"] == "answers wrongly"
    return f"{text}; see {path}/{'trial.json' if in_record else 'server.log'}"


def reason_of(record: dict) -> str:
    """Return what went wrong in a trial, in one line; "" if nothing did.

    It is the first wrong answers, else the server's first failure under load, else the first line
    of the recorded reason: why it was not measured, or its known deviations.
    """
    reason = next(iter(record["reason"].strip().splitlines()), "")
    return _under_load(record["points"]) or reason


def _under_load(points: list[dict]) -> str:
    for point in points:
        if wrong := point.get("wrong_answers"):
            first = point.get("first_wrong_answer")
            example = f", the first: {first}" if first else ""
            return f"{wrong} wrong answers at {point['offered_rate_rps']} req/s{example}"
    failed = (point for point in points if point.get("server_state", "ran") != "ran")
    first = next(failed, None)
    return f"{first['server_state']} at {first['offered_rate_rps']} req/s" if first else ""
