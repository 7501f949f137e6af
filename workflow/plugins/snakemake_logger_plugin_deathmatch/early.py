"""Set-up before Snakemake reads the Snakefile: a temporary folder, and an interrupt's message."""

import atexit
import os
import shutil
import signal
import tempfile

PREFIX = "deathmatch-run-"  # as in deathmatch.run.checkout


def begin() -> None:
    """Make a folder for all temporary files of this process, which is removed at its end.

    Until the run begins, an interrupt ends the process with one line, in place of a traceback.
    """
    folder = tempfile.mkdtemp(prefix=PREFIX)
    tempfile.tempdir = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

    def end(*_: object) -> None:
        # This also removes Snakemake's temporary folders, here and in its cache.
        atexit._run_exitfuncs()
        os.write(2, b"interrupted before the first job\n")
        os._exit(128 + signal.SIGINT)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)
