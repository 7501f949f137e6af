"""What a call of Snakemake needs before it reads the Snakefile: its folder, and one line to end."""

import atexit
import os
import shutil
import signal
import tempfile

PREFIX = "deathmatch-run-"  # by which deathmatch.run.checkout knows it


def begin() -> None:
    """Make a folder for all temporary files of this process, which goes with it.

    From now on an interrupt ends the process with one line, where Snakemake prints a traceback:
    until the run begins.
    """
    folder = tempfile.mkdtemp(prefix=PREFIX)
    tempfile.tempdir = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

    def end(*_: object) -> None:
        # What Snakemake made of temporary folders, here and in its cache, goes too.
        atexit._run_exitfuncs()
        os.write(2, b"interrupted before anything was begun\n")
        os._exit(128 + signal.SIGINT)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)
