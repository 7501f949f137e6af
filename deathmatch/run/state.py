"""The state of one run of Snakemake, and its lines of progress."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from deathmatch.builds import server_build
from deathmatch.errors import UserError
from deathmatch.plan.trial import Trial
from deathmatch.run import failures, progress
from deathmatch.run.study import Study

BUILD = "build"
"""The name of the rule in `workflow/build.smk`."""


@dataclass(frozen=True)
class Job:
    """A job of Snakemake that runs or has failed."""

    rule: str
    output: tuple[str, ...]
    logs: tuple[str, ...]
    trial: Trial | None

    @property
    def name(self) -> str:
        """The trial, or the rule with the name of its first output, for messages."""
        if trial := self.trial:
            return f"{trial.experiment.name} {trial.server.name} {trial.variant} #{trial.n}"
        path = Path(self.output[0]) if self.output else Path()
        # The output of these rules has the same file name each time; the folder differs.
        own = path.parent.name if self.rule in (BUILD, "tidy", "tidy_searched") else path.stem
        return f"{self.rule.replace('_', ' ')} {own}".strip()


@dataclass
class Run:
    """The state of a run of a study; `clock` returns seconds."""

    study: Study
    clock: Callable[[], float] = time.monotonic
    running: dict[int, Job] = field(default_factory=dict)
    failed: list[Job] = field(default_factory=list)
    steps: tuple[int, int] = (0, 0)
    """How many of Snakemake's jobs are done, and how many there are."""
    commit: str | None = None
    """The commit that measured the run's latest trial, with "-dirty" if files were changed."""

    def __post_init__(self) -> None:
        self.began_s = self.clock()
        self.records = dict(self.study.records)
        self.unbuilt = {server.name: server for server in self.study.unbuilt}
        self.standing = self._standing()

    def started(self, number: int, rule: str, output: list[str], logs: list[str]) -> None:
        """Note that Snakemake's job of that number has begun."""
        known = (self.study.order.get(str(Path(file).parent)) for file in output)
        trial = next((place_and_trial[1] for place_and_trial in known if place_and_trial), None)
        self.running[number] = Job(rule, tuple(output), tuple(logs), trial)

    def ended(self, number: int) -> str | None:
        """Note that a job has made its output; return a line of progress, None for an unknown job.

        "[5:10, 12 of 36 trials, about 9 min left] backlog null backlog=128 #1: measured".
        """
        job = self.running.pop(number, None)
        if job is None:
            return None
        outcome = changed = ""
        if job.trial:
            outcome, changed = self._trial_ended(job.trial)
        elif job.rule == BUILD:
            server = Path(job.output[0]).parent.name
            self.unbuilt.pop(server, None)
            if not server_build.record_of(server).get("ok"):
                outcome = f": failed; see {', '.join(job.logs)}"
        self.standing = self._standing()
        progressed = f"{clock(self.clock() - self.began_s)}, {self._how_far(job)}"
        return f"[{progressed}] {job.name}{outcome}{changed}"

    def _trial_ended(self, trial: Trial) -> tuple[str, str]:
        """Return a trial's outcome, and a warning if the checkout changed since the last one."""
        try:
            self.records |= progress.measured([trial], self.study.testbed)
        except UserError as error:
            # Another server's file may be broken; this trial has ended anyway.
            return f": {error.what} ({error.where})", ""
        # There is none if the trial's specification was changed while it ran.
        record = self.records.get(trial)
        if record is None:
            return ": to be measured again", ""
        if failures.reason_of(record):
            return f": {failures.line(record, trial.path)}", self._commit_changed(record)
        return f": {record['outcome']}", self._commit_changed(record)

    def _how_far(self, job: Job) -> str:
        done, total = self.steps
        if self.standing.ended and not job.trial:
            return f"step {min(done + 1, total)} of {total}"
        return progress.line(self.standing)

    def _commit_changed(self, record: dict) -> str:
        """Return a warning if the trial before was measured by another commit; "" otherwise."""
        before, now = self.commit, record.get("machine", {}).get("commit")
        self.commit = now or before
        if None in (before, now) or before == now:
            return ""
        return (
            f"\nthe checkout has changed since the last trial: {before}, now {now}. A dataset to "
            "be published needs one commit: edit in another clone while this one measures"
        )

    def broke(self, number: int) -> None:
        """Note that a job's command failed."""
        if job := self.running.pop(number, None):
            self.failed.append(job)

    def _standing(self) -> progress.Standing:
        builds_s = progress.builds_s(self.unbuilt.values())
        return progress.standing(self.study.trials, self.records, builds_s)


def clock(elapsed_s: float) -> str:
    """Return "5:10", or "1:05:10" from an hour on."""
    minutes, seconds = divmod(int(elapsed_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
