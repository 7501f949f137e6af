"""A run whose jobs are done on other machines, the nodes of a cluster.

A node shares the files of this checkout and nothing else: no pid of this machine means anything
there. So a run says again and again, in a file, that it is alive, and the process of Snakemake that
does a job on a node ends, with the job, when the run has said nothing for a while. What a killed
run left in SLURM's queue is cancelled by the next.
"""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from deathmatch.hosts import hardware

ALIVE = Path(".snakemake", "deathmatch.alive")
BEAT_S = 10.0
# File systems that many machines share stand still for a minute now and then.
SILENCE_S = 120.0
# The prefix of its jobs' names, as in profiles/slurm/config.yaml.
PREFIX = "deathmatch_"


def lead() -> None:
    """Name this run for its jobs, and say from now on that it is alive, until it ends."""
    run = uuid.uuid4().hex
    os.environ[hardware.RUN] = run
    ALIVE.parent.mkdir(exist_ok=True)
    ALIVE.write_text(f"{run} 0\n")

    def beat() -> None:
        for count in itertools.count(1):
            time.sleep(BEAT_S)
            # Written in place: whoever opens a file anew sees what is in it, on NFS too.
            ALIVE.write_text(f"{run} {count}\n")

    threading.Thread(target=beat, daemon=True).start()


def follow() -> None:
    """End this process, and so the job that it does, when the run that it belongs to is gone."""
    run, file = os.environ.get(hardware.RUN, ""), Path.cwd() / ALIVE

    def watch() -> None:
        why = wait_for_end(lambda: _said(file), run, BEAT_S, SILENCE_S, _age_s(file))
        print(f"deathmatch: {why}; this job ends, and is due again", file=sys.stderr, flush=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def wait_for_end(
    said: Callable[[], str], run: str, beat_s: float, silence_s: float, age_s: float = 0,
    clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep,
) -> str:  # fmt: skip
    """Return why a run is taken for gone, once it is: another one began, or it fell silent.

    `said` returns what the run says now, "name count", or "" if that cannot be read; what it says
    at first is `age_s` seconds old. Then only changes count, as machines disagree on the time of
    day.
    """
    last, heard_s = said(), clock() - age_s
    while True:
        now = said()
        if now and now.split()[0] != run:
            return "another run of snakemake has begun in this checkout"
        if now and now != last:
            last, heard_s = now, clock()
        elif clock() - heard_s > silence_s:
            return f"the run of snakemake that it belongs to has been silent for {silence_s:.0f} s"
        sleep(beat_s)


def _age_s(file: Path) -> float:
    """Return how long ago a file was written, both times by the clock of who keeps the files.

    A job may have waited in the queue since the run was killed.
    """
    try:
        with tempfile.TemporaryFile(dir=file.parent) as fresh:
            return max(0.0, os.fstat(fresh.fileno()).st_mtime - file.stat().st_mtime)
    except OSError:
        return 0.0


def _said(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def end_left(root: Path) -> None:
    """Cancel the jobs of earlier runs in this checkout, and wait until they have ended.

    They are those of a run that was killed: one that is alive holds the checkout.
    """
    if not shutil.which("squeue"):
        return
    reported = False
    words = ["squeue", "--me", "--noheader", "--format=%i|%j|%Z"]
    while jobs := left(subprocess.run(words, capture_output=True, text=True).stdout, root):
        if not reported:
            print(f"ending {len(jobs)} jobs of a run that was killed", file=sys.stderr)
            reported = True
        subprocess.run(["scancel", *jobs], capture_output=True)
        time.sleep(1)


def left(queue: str, root: Path) -> list[str]:
    """Return the ids of this checkout's jobs in a queue, whose lines are "id|name|folder"."""
    rows = [line.split("|", 2) for line in queue.splitlines() if line.count("|") >= 2]
    return [
        number for number, name, folder in rows
        if name.startswith(PREFIX) and Path(folder.strip()) == root
    ]  # fmt: skip
