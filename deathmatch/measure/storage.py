"""Bytes per stored message: the `storage` experiment, whose servers are programs that only store.

The program prints one line of JSON when it is empty. For each line that it then reads, a number,
it holds that many messages in all, and prints another: {"messages": N, "runtime_bytes": M}, where
M is the memory in use by the runtime's own accounting. Its resident set size we read ourselves.

The steps are those of `measure.trial`, without network, load and samples.
"""

import json
import shlex
import time
from pathlib import Path

import psutil

from deathmatch.hosts import memory, server_build
from deathmatch.hosts.host import Local, Process
from deathmatch.hosts.memory import Memory
from deathmatch.measure import server_process
from deathmatch.measure.guard import Guard
from deathmatch.measure.server_log import ServerLog
from deathmatch.measure.server_process import Running
from deathmatch.plan.testbed import Testbed
from deathmatch.plan.trial import Trial

PATIENCE_S = 120
# The allocator may give memory back a little later.
SETTLE_S = 0.5


def measure(trial: Trial, spec: dict, bed: Testbed, out: Path) -> dict:
    """Return what a trial without load adds to the record; the points are in storage.json too."""
    host, limit, log = Local(), memory.apply(bed.server), ServerLog(out / "server.log")
    with Guard(log, limit, host, host.processes):
        running = start(trial, host, log.file, limit)
        began_ns = time.monotonic_ns()
        try:
            points, reason = fill(running.process, spec["messages"]), ""
        except (ValueError, KeyError, OSError) as error:
            ended = running.died()
            suffix = f"; it ended ({ended})" if ended else ""
            points, reason = [], f"{error}{suffix}\n{server_build.tail(running.log)}"
        if limit.breaches():
            points, reason = [], f"{limit.breach}\n{reason}"
        offering_us = (time.monotonic_ns() - began_ns) // 1000
        stops = [server_process.stop(running)]
    limited = limit.record()
    limit.end()
    (out / "storage.json").write_text(json.dumps(points, indent=2) + "\n")
    cpus = host.affinity()
    return {
        "outcome": "answers wrongly" if reason else "measured",
        "reason": reason,
        "points": points,
        "stops": stops,
        "offering_us": offering_us,
        "memory": limited,
        "server_log": log.record(),
        # No network, so that nothing was set.
        "sysctl": {"server": {}, "client": {}},
        "cpus": {"server": cpus, "client": cpus},
    }


def start(trial: Trial, host: Local, log: Path, limit: Memory) -> Running:
    """Start the program, whose input and output are ours to use; it listens nowhere."""
    words = server_build.words(trial.server, trial.placeholders)
    log.write_text(f"$ {shlex.join(words)}\n")
    process = host.start(
        [*limit.prefix(), *words], output=log, folder=server_build.build_dir(trial.server.name),
        environment=server_build.environment(trial.server.name), talk=True,
    )  # fmt: skip
    return Running(process, host, log, "", 0)


def fill(process: Process, messages: list[int]) -> list[dict]:
    """Return the memory when empty and with each number of messages; ValueError if it tells none.

    OSError if the program has ended.
    """
    points = [_read(process, 0)]
    for held in messages:
        process.send(f"{held}\n")
        points.append(_read(process, held))
    return points


def _read(process: Process, messages: int) -> dict:
    line = process.receive(PATIENCE_S)
    if line is None:
        raise ValueError(f"no answer within {PATIENCE_S} s to {messages} messages")
    answer = json.loads(line or "null")
    if not isinstance(answer, dict) or answer["messages"] != messages:
        raise ValueError(f"answered {line!r} to {messages} messages")
    time.sleep(SETTLE_S)
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(True)]
    return {
        "messages": messages,
        "runtime_bytes": int(answer["runtime_bytes"]),
        "rss_bytes": sum(member.memory_info().rss for member in family),
    }
