"""System calls of the server for each reply, counted by strace(1) in windows of their own.

Tracing stops the server at every call, so a traced window gives a count and nothing else: its
rates and times are never used. Opening connections takes calls too; two windows that differ only
in the number of requests leave them out.
"""

import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

WAITS = {
    "select", "pselect6", "poll", "ppoll", "epoll_wait", "epoll_pwait", "epoll_pwait2",
    "io_uring_enter",
}  # fmt: skip
WINDOWS_S = (0.1, 1.1)
ATTACH_S = 5
SETTLE_S = 0.1


def count(pids: list[int], offer: Callable[[float], int | None], log: Path) -> dict:
    """Return {"replies", "calls"}: replies beyond the shorter window's, calls by name likewise.

    `offer(duration_s)` offers the load and returns the replies, None if some request had none;
    then, and where tracing is not allowed, the result is {"reason"}.
    """
    seen = []
    for duration_s in WINDOWS_S:
        tracer = _attached(pids, log)
        if tracer is None:
            return {"reason": f"strace: {log.read_text().strip()[-300:] or 'did not attach'}"}
        replies = offer(duration_s)
        # The server sees the load's connections end in both windows.
        time.sleep(SETTLE_S)
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        if replies is None:
            return {"reason": "the traced server did not answer every request"}
        seen.append((replies, parse(log.read_text())))
    (few, short), (many, long) = seen
    calls = {name: times - short.get(name, 0) for name, times in long.items()}
    return {"replies": many - few, "calls": {name: n for name, n in calls.items() if n > 0}}


def _attached(pids: list[int], log: Path) -> subprocess.Popen | None:
    words = ["strace", "-f", "-c", "-U", "name,calls", *(f"--attach={pid}" for pid in pids)]
    with log.open("w") as output:
        tracer = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    deadline = time.monotonic() + ATTACH_S
    while time.monotonic() < deadline and tracer.poll() is None:
        if all(_tracers(pid) == {tracer.pid} for pid in pids):
            return tracer
        time.sleep(0.01)
    tracer.kill()
    tracer.wait()
    return None


def _tracers(pid: int) -> set[int]:
    return {
        int(re.search(r"^TracerPid:\s+(\d+)", status.read_text(), re.MULTILINE)[1])
        for status in Path(f"/proc/{pid}/task").glob("*/status")
    }


def parse(summary: str) -> dict[str, int]:
    """Return {system call: times} of `strace -c -U name,calls`'s summary."""
    lines = re.findall(r"^\s*(\w+)\s+(\d+)\s*$", summary, re.MULTILINE)
    return {name: int(times) for name, times in lines if name != "total"}


def per_reply(found: dict | None) -> dict[str, float | None]:
    """Return syscalls_per_reply and waits_per_reply of a trial's count; None where it has none."""
    if not found or not found.get("replies"):
        return {"syscalls_per_reply": None, "waits_per_reply": None}
    waits = sum(times for name, times in found["calls"].items() if name in WAITS)
    return {
        "syscalls_per_reply": sum(found["calls"].values()) / found["replies"],
        "waits_per_reply": waits / found["replies"],
    }
