"""A command that runs builds and trials of its own: it holds the checkout, and calls others."""

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from deathmatch.agent import namespaces
from deathmatch.errors import UserError, as_typed
from deathmatch.hosts import sandbox
from deathmatch.plan.trial import Trial
from deathmatch.run import busy, checkout

WAIT_S = 60
WRONG = 3
"""The exit status of a command whose server answers wrongly."""


def hold() -> None:
    """Hold the checkout until this process ends; a trial's sandbox ends when it does."""
    checkout.hold()
    checkout.keep_temporary()
    os.environ[sandbox.OWNER] = str(os.getpid())


def wait_for_the_machine(say: Callable[[str], None]) -> None:
    """Wait until no other trial runs, and up to $DEATHMATCH_WAIT_S until nothing else does."""
    with namespaces.lock(waiting=lambda: say("waits: another trial holds this machine's testbed")):
        pass
    busy.wait(say, float(os.environ.get("DEATHMATCH_WAIT_S", WAIT_S)))


def run(*words: str) -> int:
    """Run `deathmatch` with these words; return its exit status."""
    return subprocess.run([sys.executable, "-m", "deathmatch", *words]).returncode


def build(server: str) -> None:
    """Build a server; UserError if that fails."""
    if run("build", server):
        raise UserError(
            f"{server} could not be built", f"build/servers/{server}/build.log",
            f"fix it, and try: {as_typed(f'deathmatch build {server}')}",
        )  # fmt: skip


def trial(given: Trial, testbed: str, any_outcome: bool = True) -> int:
    """Measure a trial on a testbed; return the exit status, 0 also if the server failed, unless
    `any_outcome` is false. Its record has how it ended.
    """
    option = ["--any-outcome"] if any_outcome else []
    return run("trial", str(given.path), "--testbed", testbed, *option)


def rounds(ends_s: float, most: float = math.inf) -> Iterator[int]:
    """Yield the number of each round, from 1 on, while the longest so far fits before the end.

    `ends_s` is of the monotonic clock. The first round always begins, and `most` do.
    """
    longest_s, number = 0.0, 0
    while number < most and (number == 0 or time.monotonic() + longest_s <= ends_s):
        began_s = time.monotonic()
        number += 1
        yield number
        longest_s = max(longest_s, time.monotonic() - began_s)
