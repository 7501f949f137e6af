"""System calls of the server for each reply, counted by strace(1) in windows of their own.

Tracing stops the server at every call, so a traced window gives a count and nothing else: its
rates and times are never used. Opening connections takes calls too; two windows that differ only
in the number of requests leave them out.
"""

import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

from deathmatch.hosts.host import Host
from deathmatch.hosts.process import Process

WINDOWS_S = (0.1, 1.1)
ATTACH_S = 5
SETTLE_S = 0.1


def count(host: Host, pids: list[int], offer: Callable[[float], int | None], log: Path) -> dict:
    """Return {"replies", "calls"}: replies beyond the shorter window's, calls by name likewise.

    `pids` are of the server's `host`; `offer(duration_s)` offers the load and returns the replies,
    None if some request had none; then, and where tracing is not allowed, the result is {"reason"}.
    """
    windows = []
    for duration_s in WINDOWS_S:
        tracer = _attached(host, pids, log)
        if tracer is None:
            return {"reason": f"strace: {log.read_text().strip()[-300:] or 'did not attach'}"}
        replies = offer(duration_s)
        # The server sees the load's connections end in both windows.
        time.sleep(SETTLE_S)
        tracer.signal(signal.SIGINT)
        tracer.wait()
        if replies is None:
            return {"reason": "the traced server did not answer every request"}
        windows.append((replies, parse(log.read_text())))
    (few, short), (many, long) = windows
    calls = {name: times - short.get(name, 0) for name, times in long.items()}
    return {"replies": many - few, "calls": {name: n for name, n in calls.items() if n > 0}}


def _attached(host: Host, pids: list[int], log: Path) -> Process | None:
    words = ["strace", "-f", "-c", "-U", "name,calls", *(f"--attach={pid}" for pid in pids)]
    log.unlink(missing_ok=True)
    tracer = host.start(words, output=log)
    deadline = time.monotonic() + ATTACH_S
    while time.monotonic() < deadline and tracer.wait(0) is None:
        if all(_tracers(host, pid) == {tracer.pid} for pid in pids):
            return tracer
        time.sleep(0.01)
    tracer.kill()
    return None


def _tracers(host: Host, pid: int) -> set[int]:
    texts = [host.read(f"/proc/{pid}/task/{thread}/status") for thread in host.threads(pid)]
    return {int(re.search(r"^TracerPid:\s+(\d+)", text, re.MULTILINE)[1]) for text in texts}


def parse(summary: str) -> dict[str, int]:
    """Return {system call: times} of `strace -c -U name,calls`'s summary."""
    # A count of more digits is none of strace's.
    lines = re.findall(r"^\s*(\w+)\s+([0-9]{1,18})\s*$", summary, re.MULTILINE)
    return {name: int(times) for name, times in lines if name != "total"}
