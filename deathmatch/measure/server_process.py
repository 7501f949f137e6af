"""A server's processes: start and stop, CPU time of each thread, system calls for each reply."""

import contextlib
import re
import shlex
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deathmatch.hosts.host import Host
from deathmatch.hosts.process import Process, tail
from deathmatch.hosts.testbed import Installation
from deathmatch.plan.server import Server
from deathmatch.plan.spec import Level

STOP_TIMEOUT_S = 5
CHILDREN_GRACE_S = 1
SEEN_SHARE = 0.01
"""The least share of a server's CPU time for which a thread's is recorded."""
# For strace: the durations of its two windows, its time-out to attach or end, and the time in which
# the server notices that the load's connections have ended.
WINDOWS_S = (0.1, 1.1)
ATTACH_S = 5
SETTLE_S = 0.1


@dataclass(frozen=True)
class Running:
    """A started server: its first process, its host, the file of its output, its address."""

    process: Process
    host: Host
    log: Path
    address: str
    port: int

    def died(self, patience_s: float = 0) -> str | None:
        """Return how the server ended ("exit status 1", "signal SIGKILL"), None while it runs."""
        status = self.process.wait(patience_s)
        if status is None:
            return None
        return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"

    def tail(self) -> str:
        """Return the last lines of its output so far."""
        self.process.collect()
        return tail(self.log)


@dataclass(frozen=True)
class Stop:
    """How a server was stopped.

    `on_sigterm`: whether it ended on SIGTERM within STOP_TIMEOUT_S; `killed`: the pids that needed
    SIGKILL; `left`: the pids that still exist, which must be none.
    """

    on_sigterm: bool
    killed: list[int]
    left: list[int]

    def record(self) -> dict[str, Any]:
        """Return the record for `stops` of trial.json (`plan.record.RecordedStop`)."""
        return asdict(self)


def start(
    host: Host, site: Installation, named: Server, values: Mapping[str, Level], address: str,
    port: int, *, cpus: Sequence[int], log: Path, prefix: Sequence[str] = (),
) -> tuple[Running, str | None]:  # fmt: skip
    """Start a built server on those CPUs and wait until it accepts a connection.

    `site` is the host's installation; `values` fills the placeholders of the server's command, in
    addition to {host}, {port} and {build}; `prefix` are words before it. `log` gets the command
    and its output. Returns the server, and None or what went wrong, at the latest after its
    `ready_timeout_s`.
    """
    own = site.command(named, {"host": address, "port": port, **values})
    with log.open("ab") as output:
        output.write(f"$ {shlex.join(host.command(own.words, cpus))}\n".encode())
    others = listeners(host)
    process = host.start(
        [*prefix, *own.words], output=log, cpus=cpus, folder=own.folder,
        environment=own.environment, bounded=True,
    )  # fmt: skip
    patience_s = named.ready_timeout_s
    running = Running(process, host, log, address, port)
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if ended := running.died():
            return running, f"ended before it listened ({ended}){_background(ended, host)}"
        if listens(host, address, port):
            return running, None
        time.sleep(0.02)
    where = whereabouts(sorted(listeners(host) - others), address, port)
    return running, f"did not listen on port {port} within {patience_s} s: {where}"


def _background(ended: str, host: Host) -> str:
    """Return a remedy if a server's command exited with 0 and left processes in the background."""
    if ended != "exit status 0" or not host.processes():
        return ""
    return ": it went to the background; its command must stay in the foreground"


def listeners(host: Host) -> set[str]:
    """Return the addresses with ports of all listening TCP sockets there."""
    return {listener.address for listener in host.listeners()}


def whereabouts(listening: Sequence[str], address: str, port: int) -> str:
    """Return where a server listens instead of `address` and `port`, with a remedy."""
    if not listening:
        return "it listens on no TCP port; if it needs longer, raise its ready_timeout_s"
    place = f"it listens on {', '.join(listening)}"
    at_port = [listener for listener in listening if listener.endswith(f":{port}")]
    if not at_port:
        return f"{place}: let it take {{port}}, which is {port}"
    if all(listener.startswith(("127.", "[::1]", "[::ffff:127.")) for listener in at_port):
        return (
            f"{place}, which only its own host can reach: let it take {{host}}, which is {address}"
        )
    return f"{place}, not on IPv4 address {address}: let it take {{host}}"


def listens(host: Host, address: str, port: int) -> bool:
    """Return whether a connection to the port, from the host itself, is accepted."""
    try:
        host.connect(address, port, 1).close()
        return True
    except OSError:
        return False


def stop(running: Running) -> Stop:
    """Stop the server and its descendants, and wait for its port; return how that went."""
    host = running.host
    with contextlib.suppress(ProcessLookupError):
        running.process.signal(signal.SIGTERM, group=True)
    on_sigterm = running.process.wait(STOP_TIMEOUT_S) is not None
    # Children may end a moment after their parent.
    deadline = time.monotonic() + CHILDREN_GRACE_S
    while (rest := host.processes()) and time.monotonic() < deadline:
        time.sleep(0.02)
    host.kill(rest, STOP_TIMEOUT_S)
    # The kernel closes the sockets of an io_uring some milliseconds after its process has ended;
    # the next server's start would take them for its own.
    deadline = time.monotonic() + CHILDREN_GRACE_S
    while listens(host, running.address, running.port) and time.monotonic() < deadline:
        time.sleep(0.002)
    running.process.wait(0)
    return Stop(on_sigterm, rest, host.processes())


def threads_cpu_ns(host: Host) -> dict[int, int]:
    """Return the CPU time of each thread on a server's host, by the thread's id.

    The scheduler counts it (/proc/PID/task/TID/schedstat). Takes about 0.1 ms a thread.
    """
    times = {}
    for pid in host.processes():
        with contextlib.suppress(OSError):
            for thread in host.threads(pid):
                with contextlib.suppress(OSError):
                    text = host.read(f"/proc/{pid}/task/{thread}/schedstat")
                    times[thread] = int(text.split()[0])
    return times


def used_us(before: Mapping[int, int], after: Mapping[int, int]) -> list[int]:
    """Return the CPU time of each thread with at least the least share, the largest first."""
    spent = [(ns - before.get(thread, 0)) // 1000 for thread, ns in after.items()]
    total = sum(spent)
    return sorted((us for us in spent if us >= SEEN_SHARE * total and us > 0), reverse=True)


def system_calls(
    host: Host, pids: list[int], offer: Callable[[float], int | None], log: Path
) -> dict:
    """Return {"replies", "calls"}: the differences between a longer and a shorter window.

    "calls" are by name. strace(1) counts them; it stops the server at every call, so rates and
    times of a traced window are never used. The calls that open connections cancel out, as the two
    windows differ only in the number of requests.

    `pids` are of the server's `host`; `offer(duration_s)` offers the load and returns the replies,
    None if a request had none. In that case, or if tracing is forbidden, the result is {"reason"}.
    """
    windows = []
    for duration_s in WINDOWS_S:
        tracer = _attached(host, pids, log)
        if tracer is None:
            return {"reason": f"strace: {log.read_text().strip()[-300:] or 'did not attach'}"}
        replies = offer(duration_s)
        time.sleep(SETTLE_S)
        tracer.signal(signal.SIGINT)
        if tracer.wait(ATTACH_S) is None:
            tracer.kill()
            return {"reason": f"strace did not end within {ATTACH_S} s"}
        if replies is None:
            return {"reason": "the traced server did not answer every request"}
        windows.append((replies, parse_strace(log.read_text())))
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


def parse_strace(summary: str) -> dict[str, int]:
    """Return {system call: count}, given the summary of `strace -c -U name,calls`."""
    # A count of more digits is none of strace's.
    lines = re.findall(r"^\s*(\w+)\s+([0-9]{1,18})\s*$", summary, re.MULTILINE)
    return {name: int(times) for name, times in lines if name != "total"}
