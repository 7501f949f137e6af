"""What one call of Snakemake is doing and how far it is, for its logger and its screen."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.plan.trial import Trial
from deathmatch.run import build_times, progress
from deathmatch.run.job_times import JobTime
from deathmatch.run.study import Study

BUILD = "build"
"""The rule of `workflow/build.smk`."""


@dataclass(frozen=True)
class Job:
    """A job of Snakemake that runs or has failed."""

    rule: str
    output: tuple[str, ...]
    logs: tuple[str, ...]
    began_s: float
    trial: Trial | None

    @property
    def name(self) -> str:
        """What a reader knows it by: a trial, or its rule with its first output's own name."""
        if self.trial:
            return name_of(self.trial)
        path = Path(self.output[0]) if self.output else Path()
        # The folder of their output says more than the file.
        own = path.parent.name if self.rule in (BUILD, "tidy", "tidy_searched") else path.stem
        return f"{self.rule.replace('_', ' ')} {own}".strip()


def name_of(trial: Trial) -> str:
    """Return "backlog null backlog=128 #1"."""
    return f"{trial.experiment.name} {trial.server.name} {trial.variant} #{trial.n}"


@dataclass
class Run:
    """The state of a run of a study; `clock` returns seconds."""

    study: Study
    clock: Callable[[], float] = time.monotonic
    note: Callable[[JobTime], None] = lambda job: None
    """Called with the time of each job that has made its output."""
    running: dict[int, Job] = field(default_factory=dict)
    failed: list[Job] = field(default_factory=list)
    steps: tuple[int, int] = (0, 0)
    """How many of Snakemake's jobs are done, and how many there are."""
    after_s: float = 0
    """How long what is left after the trial that runs will take."""
    commit: str | None = None
    """By which commit the run's latest trial was measured, with "-dirty" if files were changed."""

    def __post_init__(self) -> None:
        self.began_s = self.clock()
        self.records = dict(self.study.records)
        self.unbuilt = {server.name: server for server in self.study.unbuilt}
        self.standing = self._standing()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        return self.clock() - self.began_s

    def started(self, number: int, rule: str, output: list[str], logs: list[str]) -> None:
        """Note that Snakemake's job of that number runs from now on."""
        known = (self.study.order.get(str(Path(file).parent)) for file in output)
        trial = next((place_and_trial[1] for place_and_trial in known if place_and_trial), None)
        self.running[number] = Job(rule, tuple(output), tuple(logs), self.clock(), trial)
        if trial:
            # Computed once: a dataset has hundreds of trials.
            self.after_s = self._standing({trial: {"outcome": "measured"}}).wait_s

    def ended(self, number: int, brief: bool = False) -> str | None:
        """Note that a job has made its output; return how far the run is if it was a trial.

        Where it is `brief`, a screen shows that: only a change of the commit is returned.
        """
        job = self.running.pop(number, None)
        if job is None:
            return None
        ended_s, took_s = time.time(), self.clock() - job.began_s
        output = job.output[0] if job.output else ""
        self.note(JobTime(self.study.dataset, job.rule, output, ended_s - took_s, ended_s))
        if job.rule == BUILD:
            self.unbuilt.pop(Path(output).parent.name, None)
            self.standing = self._standing()
        if job.trial is None:
            return None
        try:
            self.records |= progress.measured([job.trial], self.study.testbed)
        except UserError as error:
            # Another server's file may be broken meanwhile: this trial has ended all the same.
            return f"[{clock(self.elapsed_s)}] {job.name}: {error.what} ({error.where})"
        self.standing = self._standing()
        # It has none if its specification was changed while it ran.
        record = self.records.get(job.trial, {})
        changed = self._commit_changed(record)
        if brief:
            return changed or None
        outcome = record.get("outcome", "to be measured again")
        told = f"[{clock(self.elapsed_s)}, {progress.line(self.standing)}] {job.name}: {outcome}"
        return f"{told}\n{changed}" if changed else told

    def _commit_changed(self, record: dict) -> str:
        """Return what to say if the trial before was measured by another commit; "" if none was."""
        before, now = self.commit, record.get("machine", {}).get("commit")
        self.commit = now or before
        if None in (before, now) or before == now:
            return ""
        return (
            f"the checkout has changed since the last trial: {before}, now {now}. A dataset "
            "that is to be shown needs one commit: edit in another clone while this one measures"
        )

    def broke(self, number: int) -> None:
        """Note that a job's command failed."""
        if job := self.running.pop(number, None):
            self.failed.append(job)

    def wait_s(self) -> float:
        """Return how long what is left will take, counting down while a trial runs."""
        for job in list(self.running.values()):
            if job.trial:
                spent_s = self.clock() - job.began_s
                return max(self.after_s, self.standing.wait_s - spent_s)
        return self.standing.wait_s

    def _standing(self, soon: dict[Trial, dict] | None = None) -> progress.Standing:
        builds_s = build_times.together_s(self.unbuilt.values())
        return progress.standing(self.study.trials, self.records | (soon or {}), builds_s)


def clock(elapsed_s: float) -> str:
    """Return "5:10", or "1:05:10" from an hour on."""
    minutes, seconds = divmod(int(elapsed_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
