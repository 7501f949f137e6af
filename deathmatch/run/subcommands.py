"""A command that runs builds and trials of its own: it holds the checkout, and calls others."""

import os
import subprocess
import sys

from deathmatch.hosts import sandbox
from deathmatch.plan.trial import Trial
from deathmatch.run import checkout


def hold() -> None:
    """Hold the checkout until this process ends; a trial's sandbox ends when it does."""
    checkout.hold()
    checkout.keep_temporary()
    os.environ[sandbox.OWNER] = str(os.getpid())


def run(*words: str) -> int:
    """Run `deathmatch` with these words; return its exit status."""
    return subprocess.run([sys.executable, "-m", "deathmatch", *words]).returncode


def trial(given: Trial, testbed: str) -> None:
    """Measure a trial on a testbed; its record has how it ended."""
    run("trial", str(given.path), "--testbed", testbed, "--any-outcome")
