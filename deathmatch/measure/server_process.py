"""Starting and stopping one server on its host."""

import contextlib
import shlex
import signal
import time
from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True)
class Running:
    """A started server: its leading process, its host, the file of its output, its address."""

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

    `on_sigterm` says whether it ended on SIGTERM within STOP_TIMEOUT_S, `killed` has the pids that
    needed SIGKILL, `left` those that are still there, which must be none.
    """

    on_sigterm: bool
    killed: list[int]
    left: list[int]

    def record(self) -> dict[str, Any]:
        """Return it as `stops` of trial.json has it (`plan.record.RecordedStop`)."""
        return asdict(self)


def start(
    host: Host, site: Installation, named: Server, values: Mapping[str, Level], address: str,
    port: int, *, cpus: Sequence[int], log: Path, prefix: Sequence[str] = (),
) -> tuple[Running, str | None]:  # fmt: skip
    """Start a built server on those CPUs and wait until it accepts a connection.

    `site` has what is built on the host; `values` fills the placeholders of the server's command,
    in addition to {host}, {port} and {build}; `prefix` are words before it. `log` gets the command
    and what it prints. Returns it and None, or what went wrong in one phrase, after its
    `ready_timeout_s` at the latest.
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
    """Return a remedy where a server ended well and left processes, as one that forks away does."""
    if ended != "exit status 0" or not host.processes():
        return ""
    return ": it went to the background; its command must stay in the foreground"


def listeners(host: Host) -> set[str]:
    """Return the addresses with ports on which anything listens for TCP there."""
    return {listener.address for listener in host.listeners()}


def whereabouts(listening: Sequence[str], address: str, port: int) -> str:
    """Return where a server listens instead of `address` and `port`, and what to do about it."""
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
    """Return whether something accepts a connection there, opened from the host itself."""
    try:
        host.connect(address, port, 1).close()
        return True
    except OSError:
        return False


def stop(running: Running) -> Stop:
    """Stop the server and everything it started, until its port is free; return how that went."""
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
