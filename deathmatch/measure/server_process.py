"""Starting and stopping one server's processes, as its `server.toml` says."""

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from deathmatch.measure import server as server_build
from deathmatch.plan import config

STOP_TIMEOUT_S = 5
CHILDREN_GRACE_S = 1


@dataclass
class Running:
    """A started server: its leading process and the file of its output."""

    process: subprocess.Popen
    log: Path
    port: int
    host: str

    def died(self, patience_s: float = 0) -> str | None:
        """Return how the server ended ("exit status 1", "signal SIGKILL"), None while it runs."""
        try:
            status = self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return None
        return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def start(
    name: str,
    values: dict,
    host: str,
    port: int,
    cpus: list[int],
    log: Path,
    prefix: Sequence[str] = (),
) -> tuple[Running, str | None]:
    """Start the server and wait until it listens.

    `values` fills the placeholders of its command, beside {host}, {port} and {build}; `prefix`
    are words before it. Returns
    the running server and None, or what went wrong in one phrase.
    """
    server = config.load("server", name)
    command = server_build.words(name, {"host": host, "port": port, **values})
    pinned = [*prefix, "taskset", "--cpu-list", ",".join(map(str, cpus)), *command]
    with log.open("ab") as output:
        output.write(f"$ {shlex.join(pinned)}\n".encode())
        output.flush()
        process = subprocess.Popen(
            pinned, cwd=server_build.build_dir(name), env=server_build.environment(name), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
    running = Running(process, log, port, host)
    patience = server.get("ready_timeout_s", 20)
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if how := running.died():
            return running, f"ended before it listened ({how})"
        if listens(host, port):
            return running, None
        time.sleep(0.02)
    return running, f"did not listen on port {port} within {patience} s"


def listens(host: str, port: int) -> bool:
    """Return whether something accepts a connection there."""
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False


def stop(running: Running, spare: set[int]) -> dict:
    """Stop the server and everything it started, until its port is free; return how that went.

    Keys: on_sigterm (did it end on SIGTERM within STOP_TIMEOUT_S), killed (pids that needed
    SIGKILL), left (pids still there: must be empty). `spare` are the pids of the sandbox that
    are not the server's.
    """
    if running.process.poll() is None:
        os.killpg(running.process.pid, signal.SIGTERM)
    try:
        running.process.wait(STOP_TIMEOUT_S)
        on_sigterm = True
    except subprocess.TimeoutExpired:
        on_sigterm = False
    # Children may end a moment after their parent.
    deadline = time.monotonic() + CHILDREN_GRACE_S
    while (rest := processes(spare)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for process in rest:
        process.kill()
    psutil.wait_procs(rest, timeout=STOP_TIMEOUT_S)
    # The kernel closes the sockets of an io_uring some milliseconds after its process has ended;
    # the next server's start would take them for its own.
    deadline = time.monotonic() + CHILDREN_GRACE_S
    while listens(running.host, running.port) and time.monotonic() < deadline:
        time.sleep(0.002)
    running.process.poll()
    return {
        "on_sigterm": on_sigterm,
        "killed": [process.pid for process in rest],
        "left": [process.pid for process in processes(spare)],
    }


def processes(spare: set[int]) -> list[psutil.Process]:
    """Return the sandbox's living processes other than its first one and those in `spare`."""
    return [
        process
        for process in psutil.process_iter(["status"])
        if process.pid != 1
        and process.pid not in spare
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]
