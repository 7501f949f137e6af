"""What a run shows: on a terminal one line that stays, else a line for each trial; what went wrong.

Snakemake looks for loggers on PYTHONPATH, by the name of this folder, before it reads the
Snakefile, which then sets `run`. All that Snakemake says stands in .snakemake/log.
"""

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_deathmatch import targets

LOCKED = "Directory cannot be locked"
IDLE = "Nothing to be done"
TOLD = (
    "RuleException:\nCalledProcessError",
    "Exiting because a job execution failed",
    "WorkflowError:\nAt least one job did not complete successfully",
)
# What SLURM's executor says of every job.
USUAL = (
    "No SLURM account given",
    "No account was given",
    "Unable to guess SLURM account",
    "No job memory information",
    "Cleaning up SLURM log files",
)
SUBMITTED = " has been submitted with SLURM jobid "
INTERRUPTED = "Terminating processes on user request"
# Of errno(3): what a full disk, or a user's full share of it, makes of any file.
FULL = ("[Errno 28]", "[Errno 122]")

if "--target-jobs" in sys.argv:
    # On a node: it is read once all plugins are known.
    targets.mend()


class LogHandler(LogHandlerBase):
    """Writes to standard error, as Snakemake's own handler does."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = False
    needs_rulegraph = False

    run = None
    """The state of this run, a deathmatch.run.state.Run; None until the Snakefile says it."""

    screen = None
    """The live view, a deathmatch.run.screen.Screen, on a terminal."""

    ending: Callable[[bool], str] | None = None
    """Returns what to say at the end of the run, given whether it was stopped before its time."""

    locked: Callable[[], str | None] | None = None
    """Returns what to say if the folder is locked; None for Snakemake's own words."""

    def __post_init__(self) -> None:
        # Not at the top: Snakemake's module of this name imports this one.
        from snakemake.logging import DefaultFilter
        from snakemake.settings.enums import Quietness

        # Where the disk is full, Snakemake's own log is too: that is told once.
        logging.raiseExceptions = False
        given = self.common_settings
        # Whether the screen is shown, whether the run has begun, and whether it ended early.
        self.shown = self.going = self.stopped = self.interrupted = False
        self.told: set[int] = set()
        self.stream = sys.stdout if given.stdout else sys.stderr
        quiet = set(given.quiet or ())
        if Quietness.RULES in quiet:
            # Not in the profile: Snakemake would then not even say that a job has finished.
            quiet.add(Quietness.PROGRESS)
        self.usual = DefaultFilter(
            quiet, given.debug_dag, given.verbose, given.dryrun, given.printshellcmds
        )

    def live(self) -> bool:
        """Return whether there is a live view, which shows what the jobs write into their logs.

        None in a pipe, none of a dry run, and none beside all that Snakemake can say.
        """
        given = self.common_settings
        unwanted = given.dryrun or given.verbose or given.debug_dag
        if self.run is None or unwanted or not self.stream.isatty():
            return False
        # Only here: rich takes its time to load.
        from deathmatch.run import screen

        self.screen = screen.of(self.run, self.stream)
        return self.screen is not None

    def emit(self, record: logging.LogRecord) -> None:
        """Write what there is to say of the record, if anything."""
        try:
            self._note(record)
            if text := self._text(record):
                self._say(text)
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Say how the run ended."""
        if self.shown:
            self.shown = False
            self.screen.stop()
        if self.interrupted:
            # That a command ended so is no failure of it.
            self.run.failed.clear()
        if self.going and self.ending is not None:
            self._say(self.ending(self.stopped))
        self.going = False
        super().close()

    def _say(self, text: str) -> None:
        if self.shown:
            self.screen.say(text)
        else:
            print(text, file=self.stream, flush=True)

    def _note(self, record: logging.LogRecord) -> None:
        """Keep the state of the run, and the screen, as the record says."""
        event = getattr(record, "event", None)
        if self.run is None or self.common_settings.dryrun:
            return
        if event == LogEvent.JOB_INFO:
            self.going = True
            self.run.started(record.jobid, record.rule_name, record.output, record.log)
            if self.screen is not None:
                self.screen.begin(record.log)
                # An ordinary user is asked for a password while packages are installed.
                if not self.shown and (record.rule_name != "build" or os.geteuid() == 0):
                    self.shown = True
                    self.screen.start()
        elif event in (LogEvent.JOB_FINISHED, LogEvent.JOB_ERROR) and self.shown:
            number = record.job_id if event == LogEvent.JOB_FINISHED else record.jobid
            job = self.run.running.get(number)
            self.screen.end(list(job.logs) if job else [])
        elif event == LogEvent.PROGRESS:
            self.run.steps = (record.done, record.total)
        elif record.getMessage().startswith(INTERRUPTED):
            self.stopped = self.interrupted = True
        elif record.getMessage().startswith(IDLE):
            self.going = True

    def _text(self, record: logging.LogRecord) -> str | None:
        event = getattr(record, "event", None)
        if event == LogEvent.JOB_INFO and self.screen is not None and not self.shown:
            return f"{self.run.running[record.jobid].name}: its log is {', '.join(record.log)}"
        if event == LogEvent.JOB_FINISHED:
            return None if self.run is None else self.run.ended(record.job_id, brief=self.shown)
        if event == LogEvent.JOB_ERROR:
            # Snakemake tells each again as it ends.
            if record.jobid in self.told:
                return None
            self.told.add(record.jobid)
            self.stopped = True
            if self.run is not None:
                self.run.broke(record.jobid)
            return _failure(record)
        if record.levelno >= logging.ERROR and any(no in record.getMessage() for no in FULL):
            return _full()
        # Which job, with its log, is told by the event above.
        if any(record.getMessage().startswith(words) for words in TOLD):
            return None
        if not self.common_settings.verbose and (
            record.getMessage().startswith(USUAL) or SUBMITTED in record.getMessage()
        ):
            return None
        if LOCKED in record.getMessage() and self.locked and (told := self.locked()):
            return told
        if record.levelno >= logging.WARNING:
            return self.format(record)
        # At each choice of the next jobs: two lines for every trial.
        if record.module == "job_scheduler" and not self.common_settings.verbose:
            return None
        return self.format(record) if self.usual.filter(record) else None


def _full() -> str:
    """Return what to say of a full disk; the folders are those that Snakemake writes to."""
    places = dict.fromkeys([os.getcwd(), os.path.expanduser("~"), tempfile.gettempdir()])
    free = [f"{shutil.disk_usage(path).free // 1_000_000} MB in {path}" for path in places]
    return (
        f"the disk is full: there are left {', '.join(free)}\n"
        "  make room and run again: finished trials are kept"
    )


def _failure(record: logging.LogRecord) -> str:
    """Return which job failed and where all stands that its command has written."""
    what = f"rule {record.rule_name} failed: {', '.join(record.output) or record.shellcmd}"
    return "\n".join([what, *(f"  log: {name}" for name in record.log)])
