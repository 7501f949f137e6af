"""The output of a run: a line of progress for each job that has ended, and what went wrong.

Snakemake finds loggers on PYTHONPATH by the name of this folder, before it reads the Snakefile.
That makes a deathmatch.run.invocation.Invocation, which has the state of the run. Snakemake's
complete log is in .snakemake/log.
"""

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_deathmatch import early, targets

IDLE = "Nothing to be done"
# These repeat an event that was shown with its log.
REPORTED = (
    "RuleException:\nCalledProcessError",
    "Exiting because a job execution failed",
    "WorkflowError:\nAt least one job did not complete successfully",
)
# SLURM's executor prints these for every job.
USUAL = (
    "No SLURM account given",
    "No account was given",
    "Unable to guess SLURM account",
    "No job memory information",
    "Cleaning up SLURM log files",
)
SUBMITTED = " has been submitted with SLURM jobid "
INTERRUPTED = "Terminating processes on user request"
# errno(3): a full disk, and a full quota.
FULL = ("[Errno 28]", "[Errno 122]")

targets.read_quoted()


class LogHandler(LogHandlerBase):
    """Writes to standard error, as Snakemake's own handler does."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        # Not at the top: Snakemake's module of this name imports this one.
        from snakemake.logging import DefaultFilter
        from snakemake.settings.enums import Quietness

        early.begin()
        # A full disk also stops Snakemake's log; `_full` reports it once.
        logging.raiseExceptions = False
        given = self.common_settings
        # The logs of each job that has begun.
        self.logs: dict[int, list[str]] = {}
        # Whether the run has begun, and whether it ended early.
        self.going = self.stopped = self.interrupted = False
        self.failed: set[int] = set()
        self.stream = sys.stdout if given.stdout else sys.stderr
        quiet = set(given.quiet or ())
        if Quietness.RULES in quiet:
            # Not in the profile, where it would also hide that a job has finished.
            quiet.add(Quietness.PROGRESS)
        self.usual = DefaultFilter(
            quiet, given.debug_dag, given.verbose, given.dryrun, given.printshellcmds
        )

    @property
    def invocation(self):
        """This process's Invocation; None before the Snakefile has made it."""
        module = sys.modules.get("deathmatch.run.invocation")
        return module and module.Invocation.latest

    @property
    def run(self):
        """The state of the run, a deathmatch.run.state.Run; None where there is none."""
        return self.invocation and self.invocation.run

    def emit(self, record: logging.LogRecord) -> None:
        """Write the text for a record, if there is one."""
        try:
            self._note(record)
            if text := self._text(record):
                self._say(text)
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Say how the run ended."""
        if self.interrupted and self.run:
            # A command that was interrupted did not fail.
            self.run.failed.clear()
        if self.going and self.invocation and (text := self.invocation.ending(self.stopped)):
            self._say(text)
        self.going = False
        super().close()

    def _say(self, text: str) -> None:
        print(text, file=self.stream, flush=True)

    def _note(self, record: logging.LogRecord) -> None:
        """Update the state of the run."""
        event = getattr(record, "event", None)
        if self.common_settings.dryrun or self.invocation is None:
            return
        if event == LogEvent.JOB_INFO:
            self.going = True
            if self.run:
                self.run.started(record.jobid, record.rule_name, record.output, record.log)
            self.logs[record.jobid] = list(record.log)
        elif event == LogEvent.PROGRESS:
            if self.run:
                self.run.steps = (record.done, record.total)
        elif record.getMessage().startswith(INTERRUPTED):
            self.stopped = self.interrupted = True
        elif record.getMessage().startswith(IDLE):
            self.going = True

    def _text(self, record: logging.LogRecord) -> str | None:
        event = getattr(record, "event", None)
        message = record.getMessage()
        if event == LogEvent.JOB_FINISHED:
            # A job without a study, such as check_dataset: show its log.
            progress = self.run.ended(record.job_id) if self.run else None
            return progress or _written(self.logs.get(record.job_id, []))
        if event == LogEvent.JOB_ERROR:
            # Snakemake reports each failure again at its end.
            if record.jobid in self.failed:
                return None
            self.failed.add(record.jobid)
            self.stopped = True
            if self.run:
                self.run.broke(record.jobid)
            return _failure(record)
        if record.levelno >= logging.ERROR:
            if any(number in message for number in FULL):
                return _full()
            if self.invocation and self.invocation.refusal:
                # In place of Snakemake's report of the rule that needed the study.
                return str(self.invocation.refusal)
        # An event was shown with the job and its log.
        if message.startswith(REPORTED):
            return None
        if not self.common_settings.verbose and (message.startswith(USUAL) or SUBMITTED in message):
            return None
        if record.levelno >= logging.WARNING:
            return self.format(record)
        # The scheduler prints two lines for every trial.
        if record.module == "job_scheduler" and not self.common_settings.verbose:
            return None
        return self.format(record) if self.usual.filter(record) else None


def _full() -> str:
    """Return the message on a full disk, with the free space where Snakemake writes."""
    places = dict.fromkeys([os.getcwd(), os.path.expanduser("~"), tempfile.gettempdir()])
    free = [f"{shutil.disk_usage(path).free // 1_000_000} MB in {path}" for path in places]
    return (
        f"the disk is full; free are {', '.join(free)}\n"
        "  make room and run again: finished trials are kept"
    )


def _failure(record: logging.LogRecord) -> str:
    """Return which job failed, with its logs and their text."""
    what = f"rule {record.rule_name} failed: {', '.join(record.output) or record.shellcmd}"
    lines = [what, *(f"  log: {name}" for name in record.log), _written(record.log)]
    return "\n".join(filter(None, lines))


def _written(logs: Iterable[str]) -> str:
    """Return the text of these logs."""
    texts = (Path(name).read_text(errors="replace") for name in logs if Path(name).is_file())
    return "\n".join(text.rstrip() for text in texts)
