"""A run whose jobs run on other machines, the nodes of a cluster.

A node shares only the files of this checkout; a pid of this machine means nothing there. So the run
writes a heartbeat to a file, and Snakemake's process on a node ends, with its job, when the
heartbeat stops. The next run cancels the jobs that a killed run left in SLURM's queue.
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
# Shared file systems sometimes hang for a minute.
SILENCE_S = 120.0
PREFIX = "deathmatch_"  # of the jobs' names, as in profiles/slurm/config.yaml


def lead() -> None:
    """Name this run for its jobs, and write its heartbeat until this process ends."""
    run = uuid.uuid4().hex
    os.environ[hardware.RUN] = run
    ALIVE.parent.mkdir(exist_ok=True)
    ALIVE.write_text(f"{run} 0\n")

    def beat() -> None:
        for count in itertools.count(1):
            time.sleep(BEAT_S)
            # Written in place: NFS shows the new content to a process that opens the file again.
            ALIVE.write_text(f"{run} {count}\n")

    threading.Thread(target=beat, daemon=True).start()


def follow() -> None:
    """End this process, and so its job, when the run that it belongs to is gone."""
    run, file = os.environ.get(hardware.RUN, ""), Path.cwd() / ALIVE

    def watch() -> None:
        why = wait_for_end(lambda: _said(file), run, BEAT_S, SILENCE_S, _age_s(file))
        print(f"deathmatch: {why}; this job ends, and will run again", file=sys.stderr, flush=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def wait_for_end(
    said: Callable[[], str], run: str, beat_s: float, silence_s: float, age_s: float = 0,
    clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep,
) -> str:  # fmt: skip
    """Return the reason once a run is gone: another one has begun, or its heartbeat has stopped.

    `said` returns the heartbeat, "name count", or "" if it cannot be read. The first one is `age_s`
    seconds old; after that only changes count, as clocks of machines differ.
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
    """Return how long ago a file was written, by the file server's clock.

    It may be long: a job may have waited in the queue since the run was killed.
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
    """Cancel the jobs that killed runs of this checkout left, and wait until they have ended.

    No other run is alive, as this one holds the checkout.
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
