"""What the commands that build and measure share: the checkout, a sandbox, other commands."""

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from deathmatch.agent import namespaces
from deathmatch.errors import UserError, as_typed
from deathmatch.hosts import sandbox
from deathmatch.plan.paths import ROOT
from deathmatch.plan.trial import Trial
from deathmatch.run import busy, checkout

WAIT_S = 60
WRONG = 3
"""The exit status of a command whose server gives wrong answers."""


def hold() -> None:
    """Hold the checkout until this process ends; a trial's sandbox ends with it."""
    checkout.hold()
    checkout.keep_temporary()
    os.environ[sandbox.OWNER] = str(os.getpid())


def wait_for_the_machine(say: Callable[[str], None]) -> None:
    """Wait for the end of other trials, and up to $DEATHMATCH_WAIT_S for a quiet machine."""
    with namespaces.lock(waiting=lambda: say("waits: another trial holds this machine's testbed")):
        pass
    busy.wait(say, float(os.environ.get("DEATHMATCH_WAIT_S", WAIT_S)))


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Yield a temporary folder that a sandbox can write into."""
    # A temporary folder may be below /run, and the sandbox mounts its own /run.
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="scratch-") as folder:
        yield Path(folder)


def in_sandbox(function: Callable[[], dict]) -> tuple[int, dict]:
    """Call a function in a sandbox; return the exit status, and what it returned, by way of JSON.

    {} if it failed.
    """
    with scratch() as folder:
        file = folder / "result.json"
        status = sandbox.call(lambda: file.write_text(json.dumps(function())) and 0)
        return status, json.loads(file.read_text()) if file.exists() else {}


def run(*words: str) -> int:
    """Run `deathmatch` with these words; return its exit status."""
    return subprocess.run([sys.executable, "-m", "deathmatch", *words]).returncode


def build(server: str) -> None:
    """Build a server; raise UserError if that fails."""
    if run("build", server):
        raise UserError(
            f"{server} could not be built", f"build/servers/{server}/build.log",
            f"fix the cause and try again: {as_typed(f'deathmatch build {server}')}",
        )  # fmt: skip


def trial(given: Trial, testbed: str, any_outcome: bool = True) -> int:
    """Measure a trial on a testbed; return the exit status.

    With `any_outcome` it is 0 even if the server could not be measured: the record has the outcome.
    """
    option = ["--any-outcome"] if any_outcome else []
    return run("trial", str(given.path), "--testbed", testbed, *option)


def rounds(ends_s: float, most: float = math.inf) -> Iterator[int]:
    """Yield the number of each round, from 1, while a round as long as the longest so far fits.

    `ends_s` is the end on the monotonic clock. There is at least one round, and at most `most`.
    """
    longest_s, number = 0.0, 0
    while number < most and (number == 0 or time.monotonic() + longest_s <= ends_s):
        began_s = time.monotonic()
        number += 1
        yield number
        longest_s = max(longest_s, time.monotonic() - began_s)
