"""What a run shows on the terminal: a line for each finished trial, and what went wrong.

Snakemake looks for loggers on PYTHONPATH, by the name of this folder, before it reads the
Snakefile, which then sets `finished`. All that Snakemake says stands in .snakemake/log.
"""

import logging
import sys
from collections.abc import Callable

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent


class LogHandler(LogHandlerBase):
    """Writes to standard error, as Snakemake's own handler does."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = False
    needs_rulegraph = False

    finished: Callable[[list[str]], str | None] = staticmethod(lambda outputs: None)
    """Returns what to say once a job has made these files, or None."""

    def __post_init__(self) -> None:
        # Not at the top: Snakemake's module of this name imports this one.
        from snakemake.logging import DefaultFilter

        given = self.common_settings
        self.outputs: dict[int, list[str]] = {}
        self.usual = DefaultFilter(
            given.quiet, given.debug_dag, given.verbose, given.dryrun, given.printshellcmds
        )

    def emit(self, record: logging.LogRecord) -> None:
        """Write what there is to say of the record, if anything."""
        try:
            if text := self._text(record):
                print(text, file=sys.stdout if self.common_settings.stdout else sys.stderr)
        except Exception:
            self.handleError(record)

    def _text(self, record: logging.LogRecord) -> str | None:
        event = getattr(record, "event", None)
        if event == LogEvent.JOB_INFO:
            self.outputs[record.jobid] = list(record.output)
        if event == LogEvent.JOB_FINISHED:
            return self.finished(self.outputs.pop(record.job_id, []))
        if event == LogEvent.JOB_ERROR:
            return _failure(record)
        if record.levelno >= logging.WARNING:
            return self.format(record)
        # At each choice of the next jobs: two lines for every trial.
        if record.module == "job_scheduler" and not self.common_settings.verbose:
            return None
        return self.format(record) if self.usual.filter(record) else None


def _failure(record: logging.LogRecord) -> str:
    """Return which job failed and where all stands that its command has written."""
    what = f"rule {record.rule_name} failed: {', '.join(record.output) or record.shellcmd}"
    return "\n".join([what, *(f"  log: {name}" for name in record.log)])
