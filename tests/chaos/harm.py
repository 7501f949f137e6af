"""The kinds of harm to a run: which process it hits, and how its moment is drawn."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from place import Going, Place

BUILD, TRIAL, CLIENT, SERVER, AGENT, ANY = "build", "trial", "client", "server", "agent", "any"
SNAKEMAKE, INTERRUPT, DISK = "snakemake", "interrupt", "full disk"

KINDS = (SNAKEMAKE, INTERRUPT, TRIAL, CLIENT, SERVER, BUILD, DISK, AGENT, ANY)
"""All kinds; a series takes them in turn."""

AFTER = (-1, 0, 0, 0, 1, 1)


@dataclass(frozen=True)
class Harm:
    """One harm: its kind; how many trials end before it, and how long after that it comes.

    `delay` is a share of the time that a trial takes. After no trial, the run has read what it is
    to do; after -1 it has just been started.
    """

    kind: str
    after: int
    delay: float


def drawn(seed: int, count: int) -> list[Harm]:
    """Return `count` harms, each kind as often as the others."""
    luck = random.Random(seed)
    kinds = [KINDS[number % len(KINDS)] for number in range(count)]
    luck.shuffle(kinds)
    # Builds come before trials.
    return [Harm(kind, 0 if kind == BUILD else luck.choice(AFTER), luck.random()) for kind in kinds]


def _words(one: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return one.cmdline()
    return []


def _runs(*wanted: str) -> Callable[[list[str]], bool]:
    return lambda words: all(word in words for word in wanted)


_ROLES: dict[str, Callable[[list[str]], bool]] = {
    TRIAL: _runs("-m", "deathmatch", "trial"),
    BUILD: _runs("-m", "deathmatch", "build"),
    AGENT: _runs("-m", "deathmatch.agent"),
    CLIENT: lambda words: bool(words) and Path(words[0]).name == "httperf",
    SERVER: lambda words: (bool(words) and words[0].endswith(("/null-server", "broken.py")))
    or (len(words) > 1 and words[1].endswith("/broken.py")),
    ANY: bool,
}  # fmt: skip


def victims(going: Going, kind: str) -> list[psutil.Process]:
    """Return the processes of the run that a harm of that kind may hit now."""
    if kind in (SNAKEMAKE, INTERRUPT):
        return [one for one in going.below() if one.pid == going.pid]
    return [one for one in going.below() if _ROLES[kind](_words(one))]


@contextmanager
def done(harm: Harm, place: Place, going: Going, luck: random.Random) -> Iterator[str]:
    """Do the harm; yield its victim, "" if the run had ended before; empty a full disk again."""
    if harm.kind == DISK:
        filler = place.fill()
        yield "the disk is full"
        filler.unlink()
    else:
        yield _killed(harm, going, luck)


def _killed(harm: Harm, going: Going, luck: random.Random) -> str:
    while not going.over():
        found = sorted(victims(going, harm.kind), key=lambda one: one.pid)
        if not found:
            time.sleep(0.01)
            continue
        one = luck.choice(found)
        words = _words(one)
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if harm.kind == INTERRUPT:
                os.killpg(one.pid, signal.SIGINT)
            else:
                one.kill()
            return " ".join(words)[:150]
    return ""
