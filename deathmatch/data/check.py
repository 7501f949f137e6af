"""Is a dataset fit to be compared with others? `./shell deathmatch check NAME`.

It checks records and tables; with `--strict`, every table is made again from the raw logs, and
everything is checked. Exit status 0: it passed; 3: it is rejected; 1: it could not be checked.
"""

import argparse
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from deathmatch.checks import findings
from deathmatch.checks.findings import Finding
from deathmatch.data import sittings
from deathmatch.data.inventory import Inventory
from deathmatch.data.strict import dataset_checks as whole
from deathmatch.data.strict import trial_checks
from deathmatch.data.strict.evidence import Evidence, gathered
from deathmatch.errors import UserError
from deathmatch.plan import files, selection
from deathmatch.plan.selection import Choice

Check = Callable[[Evidence], Iterable[Finding]]

QUICK: tuple[Check, ...] = (
    trial_checks.wrong_answers, whole.counters, whole.planned, whole.in_sittings, whole.specified,
    whole.tools_and_machine, whole.nothing_private,
)  # fmt: skip
STRICT: tuple[Check, ...] = (
    *QUICK, whole.placed, whole.clean_commit, whole.alike, whole.in_rounds,
    trial_checks.each_trial, whole.only_once, whole.checksums,
)  # fmt: skip
VERDICTS = {
    findings.PASSED: "passed",
    findings.REJECTED: "rejected",
    findings.UNCHECKED: "could not be checked",
}


@dataclass(frozen=True)
class Report:
    """The findings on a dataset, the worst first, and the number of its trials."""

    dataset: str
    trials: int
    findings: Sequence[Finding]

    @property
    def status(self) -> int:
        """The exit status."""
        return findings.status(self.findings)

    @property
    def summary(self) -> str:
        """One line: the verdict on the dataset, its number of trials, the findings by verdict."""
        verdict = f"data/{self.dataset}: {VERDICTS[self.status]}: {self.trials} trials"
        counts = findings.counts(self.findings)
        return f"{verdict}: {counts}" if counts else verdict

    def text(self, width: int = 100) -> str:
        """Return the whole report, wrapped at `width` columns between words."""
        begin = f"data/{self.dataset}/"
        seen = findings.report(self.findings, width, lambda where: where.removeprefix(begin))
        return f"{seen}\n\n{self.summary}" if seen else self.summary

    def as_json(self) -> dict:
        """Return the whole report, ready for JSON."""
        return {
            "dataset": self.dataset, "verdict": VERDICTS[self.status], "trials": self.trials,
            "findings": [found.as_json() for found in self.findings],
        }  # fmt: skip


def main(given: argparse.Namespace) -> int:
    """Check the dataset named on the command line; return the exit status."""
    choice = selection.given(given)
    report = checked(given.dataset, choice, strict=given.strict)
    if given.json:
        findings.say(json.dumps(report.as_json(), indent=2))
    else:
        findings.say(report.text(shutil.get_terminal_size((100, 24)).columns))
        if not choice.whole:
            findings.say(f"looked for the trials that {' '.join(choice.settings)} chooses")
    return report.status


def checked(dataset: str, choice: Choice, *, strict: bool) -> Report:
    """Return the report on a dataset; the working directory must be the project's root.

    Trials that are not chosen may be missing; if they are there, they are checked. Raises UserError
    if there is no such dataset, or nothing of it.
    """
    spec, held = files.dataset(dataset), Inventory(dataset)
    if not held.folder.is_dir() or not any(held.folder.glob("*/*")):
        raise UserError(
            "nothing of it is here", str(held.folder), f"snakemake --config dataset={dataset}"
        )
    chosen = [] if spec.frozen else Inventory(dataset, choice).chosen
    if spec.sittings and not sittings.lacking(dataset):
        # Its stop rule may have completed it without some sittings.
        there = sittings.accepted(dataset)
        chosen = [t for t in chosen if spec.sitting_of(t.experiment.name, t.n) in there]
    possible = held.chosen if spec.frozen else list(held.possible.values())
    with gathered(held.folder, spec, possible, chosen, from_raw=strict) as evidence:
        return asked(evidence, STRICT if strict else QUICK)


def asked(evidence: Evidence, checks: Iterable[Check] = STRICT) -> Report:
    """Return the report on what was read: faults found while reading, and findings of `checks`."""
    found = [*evidence.findings, *(one for check in checks for one in check(evidence))]
    ordered = findings.sorted_findings(found, evidence.dataset.waives)
    return Report(evidence.dataset.name, len(evidence.found), ordered)
