"""Bytes per stored message: the `storage` experiment, whose servers are programs that only store.

The program prints one line of JSON when it is empty. For each line that it then reads, a number,
it holds that many messages in all, and prints another: {"messages": N, "runtime_bytes": M}, where
M is the memory in use by the runtime's own accounting. Its resident set size we read ourselves.
"""

import json
import select
import shlex
import subprocess
import time
from pathlib import Path

import psutil

from deathmatch.hosts import testbed
from deathmatch.measure import server, server_process
from deathmatch.plan import matrix

PATIENCE_S = 120
# The allocator may give memory back a little later.
SETTLE_S = 0.5


class Trial:
    """One trial: start the program, fill it step by step, read its memory, end it."""

    def __init__(self, trial: matrix.Trial, bed: dict, spec: dict, out: Path):
        self.trial, self.spec, self.out = trial, spec, out
        self.cpus = {"server": testbed.affinity(), "client": testbed.affinity()}
        self.offering_us = 0

    def sysctls(self) -> dict:
        """Return what was in force: no network, so nothing."""
        return {"server": {}, "client": {}}

    def sweep(self) -> dict:
        """Return outcome, reason, points and stops."""
        words = server.words(self.trial.server, matrix.placeholders(self.trial))
        with (self.out / "server.log").open("wb") as log:
            log.write(f"$ {shlex.join(words)}\n".encode())
            log.flush()
            process = subprocess.Popen(
                words, cwd=server.build_dir(self.trial.server),
                env=server.environment(self.trial.server), start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip
        running = server_process.Running(process, self.out / "server.log", 0, "")
        began_ns = time.monotonic_ns()
        try:
            points = self._fill(process)
            reason = ""
        except (ValueError, KeyError, OSError) as error:
            points = []
            how = running.died()
            reason = f"{error}{f'; it ended ({how})' if how else ''}\n{server.tail(running.log)}"
        self.offering_us = (time.monotonic_ns() - began_ns) // 1000
        stops = [server_process.stop(running, set())]
        (self.out / "memory.json").write_text(json.dumps(points, indent=2) + "\n")
        outcome = "answers wrongly" if reason else "measured"
        return {"outcome": outcome, "reason": reason, "points": points, "stops": stops}

    def _fill(self, process: subprocess.Popen) -> list[dict]:
        points = [self._read(process, 0)]
        for messages in self.spec["messages"]:
            process.stdin.write(f"{messages}\n".encode())
            process.stdin.flush()
            points.append(self._read(process, messages))
        return points

    def _read(self, process: subprocess.Popen, messages: int) -> dict:
        if not select.select([process.stdout], [], [], PATIENCE_S)[0]:
            raise ValueError(f"no answer within {PATIENCE_S} s to {messages} messages")
        line = process.stdout.readline()
        said = json.loads(line or b"null")
        if not isinstance(said, dict) or said["messages"] != messages:
            raise ValueError(f"answered {line!r} to {messages} messages")
        time.sleep(SETTLE_S)
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(True)]
        rss_bytes = sum(member.memory_info().rss for member in family)
        return {
            "messages": messages,
            "runtime_bytes": int(said["runtime_bytes"]),
            "rss_bytes": rss_bytes,
        }
