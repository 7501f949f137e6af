"""A sandbox for one trial: namespaces and a lock that end with it, however it ends.

Two processes are forked. The first makes the namespaces, the second is the first process of the new
pid namespace. If this process dies, the kernel kills the first; if that dies, the second; and with
that every process in the namespace, daemons included.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil

from deathmatch.agent import namespaces
from deathmatch.errors import UserError
from deathmatch.hosts import forked
from deathmatch.hosts.forked import LIBC

# unshare(2), mount(2); Python has `os.unshare` from 3.12 on.
_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = (
    0x0002_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000,
)  # fmt: skip
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 0x2, 0x4, 0x8, 0x4000, 0x4_0000

# Snakemake's pid, on a node of a cluster that of the Snakemake that runs the job there. A killed
# Snakemake leaves its job's shell running, so the sandbox watches the pid.
OWNER = "DEATHMATCH_OWNER"


def _in_user_namespace() -> bool:
    """Return whether root is root of a user namespace, as in a rootless container.

    There a sandbox with a network needs another user namespace below: `ip -n` mounts a new /sys,
    and the kernel lets root of a user namespace do that only if a namespace above keeps the old one
    visible.
    """
    return Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]


def call(function: Callable[[], int | None]) -> int:
    """Call a function in the sandbox under the machine's testbed lock; return its exit status.

    The function runs in a fork of this process, and its changes to memory are lost. A UserError is
    printed, and the status is 1, as it is if the kernel forbids namespaces. If the process named by
    $DEATHMATCH_OWNER dies, so does the sandbox, and the status is 1.
    """
    waits = "waiting: another trial holds this machine's testbed"
    with namespaces.lock(waiting=lambda: print(waits, file=sys.stderr)):
        child = forked.start(lambda: _first(function))
        try:
            ended = _has_ended_first(child)
        except BaseException:
            forked.kill(child)
            raise
        if ended:
            return forked.wait(child)
        forked.kill(child)
        return 1


def forbidden(reason: str) -> UserError:
    """Return the error that the kernel forbids this user to make namespaces."""
    return UserError(
        f"no permission to make namespaces: {reason}",
        where="testbed netns",
        remedy="run as root, or let users make namespaces: "
        "sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000 "
        "(on Ubuntu also kernel.apparmor_restrict_unprivileged_userns=0)",
    )


def _first(function: Callable[[], int | None]) -> int:
    """Make the namespaces and start their first process; return its exit status."""
    # The function handles interrupts.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    handler = signal.default_int_handler
    try:
        _enter_namespaces()
    except OSError as error:
        raise forbidden(f"unshare failed: {error.strerror}") from None

    def first() -> int | None:
        signal.signal(signal.SIGINT, handler)
        # A /proc of the new pid namespace, invisible outside.
        _mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE)
        _mount(b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
        return function()

    return forked.wait(forked.start(first))


def _enter_namespaces() -> None:
    """Enter new network, mount and pid namespaces; without root, as root of a user namespace."""
    flags = _CLONE_NEWNET | _CLONE_NEWNS | _CLONE_NEWPID
    if os.geteuid() == 0 and not _in_user_namespace():
        _checked(LIBC.unshare(flags))
        return
    user, group = os.geteuid(), os.getegid()
    _checked(LIBC.unshare(flags | _CLONE_NEWUSER))
    # user_namespaces(7): a group is mapped only where groups can no longer be set.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def _mount(source: bytes, target: bytes, kind: bytes | None, flags: int) -> None:
    _checked(LIBC.mount(source, target, kind, ctypes.c_ulong(flags), None))


def _checked(status: int) -> None:
    if status != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _has_ended_first(child: int) -> bool:
    """Wait until a child or the owner has ended; return whether it was the child."""
    with contextlib.ExitStack() as opened:
        ended = os.pidfd_open(child)
        opened.callback(os.close, ended)
        watched = [ended]
        if owner := os.environ.get(OWNER):
            try:
                watched.append(os.pidfd_open(int(owner)))
            except ProcessLookupError:
                return False
            opened.callback(os.close, watched[-1])
        ready, _, _ = select.select(watched, [], [])
        return ended in ready


def die_with_owner() -> None:
    """End this process and its children if the process named by $DEATHMATCH_OWNER dies.

    For processes outside a sandbox: builds, notebooks, the paper.
    """
    owner = os.environ.get(OWNER)
    if not owner:
        return

    def watch() -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(int(owner)).wait()
        me, stopped = psutil.Process(), []
        while fresh := [child for child in me.children(recursive=True) if child not in stopped]:
            for child in fresh:
                with contextlib.suppress(psutil.Error):
                    child.suspend()
            stopped += fresh
        # The direct children last, as this process may end with them.
        for child in reversed(stopped):
            with contextlib.suppress(psutil.Error):
                child.kill()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
