"""Bytes per stored message: the `storage` experiment, whose servers are programs that only store.

The program prints one line of JSON when it is empty. Then it reads numbers, one on a line; for each
it stores messages up to that number and prints another line: {"messages": N, "runtime_bytes": M},
where M is the memory in use according to the runtime. Its resident set size is read separately.

The steps are those of `measure.trial`, without network, load and samples.
"""

import json
import shlex
import time
from pathlib import Path

from deathmatch.agent.children import LIMIT_BYTES
from deathmatch.hosts.host import Host
from deathmatch.hosts.memory import Guard, Memory
from deathmatch.hosts.process import Process
from deathmatch.hosts.testbed import SERVER, Testbed
from deathmatch.measure import server_process
from deathmatch.measure.context import PORT, StepTimes
from deathmatch.measure.server_process import Running
from deathmatch.plan.trial import Trial

PATIENCE_S = 120
# The allocator may return memory a little later.
SETTLE_S = 0.5


def measure(trial: Trial, spec: dict, hosts: Testbed, out: Path, times: StepTimes) -> dict:
    """Return the record's fields of a trial without load; the points are also in storage.json."""
    host, limit = hosts.server, hosts.limit_memory()
    with Guard(limit, host, host.processes):
        with times.of("server_start"):
            running = start(trial, hosts, out / "server.log", limit)
        began_ns = time.monotonic_ns()
        try:
            with times.of("offering"):
                points, reason = fill(host, running.process, spec["messages"]), ""
        except (ValueError, KeyError, OSError) as error:
            ended = running.died()
            suffix = f"; it ended ({ended})" if ended else ""
            points, reason = [], f"{error}{suffix}\n{running.tail()}"
        if limit.breaches():
            points, reason = [], f"{limit.breach}\n{reason}"
        offering_us = (time.monotonic_ns() - began_ns) // 1000
        with times.of("stop"):
            stop = server_process.stop(running)
    limited = limit.record()
    limit.end()
    (out / "storage.json").write_text(json.dumps(points, indent=2) + "\n")
    cpus = host.affinity()
    return {
        "outcome": "answers wrongly" if reason else "measured",
        "reason": reason,
        "points": points,
        "stops": [stop.record()],
        "offering_us": offering_us,
        "memory": limited,
        "server_log": {
            "limit_bytes": LIMIT_BYTES, "left_out_bytes": running.process.left_out_bytes(),
        },
        # No load, so that nothing was set for it.
        "sysctl": {"server": {}, "client": {}},
        "cpus": {"server": cpus, "client": cpus},
    }  # fmt: skip


def start(trial: Trial, hosts: Testbed, log: Path, limit: Memory) -> Running:
    """Start the program, with its input and output for `fill`; it does not listen."""
    own = hosts.installations[SERVER].command(trial.server, trial.placeholders)
    log.write_text(f"$ {shlex.join(own.words)}\n")
    process = hosts.server.start(
        [*limit.prefix(), *own.words], output=log, folder=own.folder, environment=own.environment,
        talk=True, bounded=True,
    )  # fmt: skip
    return Running(process, hosts.server, log, hosts.address, PORT)


def fill(host: Host, process: Process, messages: list[int]) -> list[dict]:
    """Return the memory when empty and with each number of messages.

    Raises ValueError if the program prints none, OSError if it has ended.
    """
    points = [_read(host, process, 0)]
    for held in messages:
        process.send(f"{held}\n")
        points.append(_read(host, process, held))
    return points


def _read(host: Host, process: Process, messages: int) -> dict:
    line = process.receive(PATIENCE_S)
    if line is None:
        raise ValueError(f"no answer within {PATIENCE_S} s to {messages} messages")
    answer = json.loads(line or "null")
    if not isinstance(answer, dict) or answer["messages"] != messages:
        raise ValueError(f"answered {line!r} to {messages} messages")
    time.sleep(SETTLE_S)
    return {
        "messages": messages,
        "runtime_bytes": int(answer["runtime_bytes"]),
        "rss_bytes": sum(host.usage(pid)["rss_bytes"] for pid in host.processes()),
    }
