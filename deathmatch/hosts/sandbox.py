"""A sandbox for one trial: namespaces and a lock that end with it, whatever ends it.

`setpriv` passes the death of this process on to `unshare`, `unshare --kill-child` to the first
process of the new pid namespace, and the kernel to every process in it, daemons included.
"""

import contextlib
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from deathmatch.errors import UserError

# Snakemake's pid: a killed Snakemake leaves its job's shell running, so we watch it ourselves. On a
# node of a cluster it is that of the Snakemake that runs the job there.
OWNER = "DEATHMATCH_OWNER"


def command(network: bool = True, user: Sequence[str] = ("--map-root-user",)) -> list[str]:
    """Return the words that run a command in new network, pid and mount namespaces.

    Without root, a user namespace makes us root inside, or what the options `user` of unshare(1)
    say. With `network` false, the network stays this process's. Raises UserError where the kernel
    forbids it.
    """
    root = os.geteuid() == 0 and not (network and _in_user_namespace())
    owned = [] if root else ["--user", *user]
    kinds = [*(["--net"] if network else []), "--mount", "--pid", "--fork", "--kill-child"]
    unshare = ["unshare", *owned, *kinds]
    words = ["setpriv", "--pdeathsig", "KILL", "--", *unshare, "--mount-proc", "--"]
    try:
        probe = subprocess.run([*words, "true"], capture_output=True, text=True)
    except FileNotFoundError as error:
        raise UserError(f"{error.filename} is not installed", remedy="run inside ./shell") from None
    if probe.returncode != 0:
        raise UserError(
            f"no permission to make namespaces: {probe.stderr.strip()}",
            where="testbed netns",
            remedy="run as root, or let users make namespaces: "
            "sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000 "
            "(on Ubuntu also kernel.apparmor_restrict_unprivileged_userns=0)",
        )
    return words


def _in_user_namespace() -> bool:
    """Return whether root is that of a user namespace, as in a rootless container.

    There a sandbox with a network needs a user namespace below. `ip -n` replaces /sys, and the
    kernel lets root of a user namespace mount another one only where the old one stays visible:
    where a namespace above holds it.
    """
    return Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]


def run(words: list[str]) -> int:
    """Run a command in the sandbox under the machine's testbed lock; return its exit status.

    If the process named by $DEATHMATCH_OWNER dies, the sandbox dies too and 1 is returned.
    """
    prefix = command()
    with _lock():
        child = subprocess.Popen([*prefix, *words])
        try:
            return _wait(child)
        finally:
            _end(child)


def _end(child: subprocess.Popen) -> None:
    """Kill a sandbox with all that is in it.

    `unshare --kill-child` asks for that only after it has forked: one that is killed between the
    two would leave its child.
    """
    if child.poll() is not None:
        return
    outer = psutil.Process(child.pid)
    outer.suspend()
    while outer.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
        time.sleep(0.001)
    # From here on it does not fork.
    for process in outer.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    child.kill()
    child.wait()


def _wait(child: subprocess.Popen) -> int:
    ended = os.pidfd_open(child.pid)
    watched = [ended]
    if owner := os.environ.get(OWNER):
        try:
            watched.append(os.pidfd_open(int(owner)))
        except ProcessLookupError:
            return 1
    ready, _, _ = select.select(watched, [], [])
    return child.wait() if ended in ready else 1


def die_with_owner() -> None:
    """From now on, if the process named by $DEATHMATCH_OWNER dies, so do this one and its children.

    Processes outside a sandbox need it: builds, notebooks, the paper.
    """
    owner = os.environ.get(OWNER)
    if not owner:
        return

    def watch() -> None:
        _wait_for_end(int(owner))
        me, stopped = psutil.Process(), []
        while fresh := [child for child in me.children(recursive=True) if child not in stopped]:
            for child in fresh:
                with contextlib.suppress(psutil.Error):
                    child.suspend()
            stopped += fresh
        # This process's own children last: it may end as they do.
        for child in reversed(stopped):
            with contextlib.suppress(psutil.Error):
                child.kill()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _wait_for_end(pid: int) -> None:
    """Return once that process, which need not be a child, has ended."""
    # Only Linux reports it; elsewhere psutil polls.
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(ProcessLookupError):
            select.select([os.pidfd_open(pid)], [], [])
    else:
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).wait()


def _lock() -> socket.socket:
    """Take the lock, waiting for whoever holds it.

    It is a socket in the abstract namespace: it has no file and cannot outlive its holder.
    """
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    announced = False
    while True:
        try:
            lock.bind("\0deathmatch-testbed")
            return lock
        except OSError:
            if not announced:
                print("waiting: another trial holds this machine's testbed", file=sys.stderr)
                announced = True
            time.sleep(0.5)
