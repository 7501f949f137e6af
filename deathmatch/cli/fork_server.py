"""A process that has imported the project and forks for each command of a run: run/README.md.

It ends when the run ends, and a fork ends when this process or its client ends.
"""

import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Sequence
from importlib import import_module

from deathmatch.cli import main as command_line
from deathmatch.cli.commands import COMMANDS
from deathmatch.errors import UserError
from deathmatch.hosts import forked

_MOST_REQUEST_BYTES = 1 << 20
_FIRST = ("trial", "build")  # loaded before a command asks: every run needs them first


def main() -> None:
    """Serve a socket until the parent ends: the arguments are its descriptor and a pidfd."""
    # An interrupt was blocked until here. It is for the running commands and ends the run, so
    # commands that have been requested and have not begun must not begin.
    interrupts: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    listener_fd, parent = map(int, sys.argv[1:])
    forked.die_with(parent)
    listener = socket.socket(fileno=listener_fd)
    for name in _FIRST:
        _load([name])
    with contextlib.suppress(_Forked):
        _serve(listener, interrupts)
    # Only forks get here.
    command_line.run()


class _Forked(Exception):
    """Raised in a fork to leave the server's loop."""


def _serve(listener: socket.socket, interrupts: list[int]) -> None:
    waiting: dict[int, tuple[socket.socket, int]] = {}
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                connection, _ = listener.accept()
                others = [selector, listener, *(c for c, _ in waiting.values())]
                pid = _answer(connection, others, interrupts)
                if pid is None:
                    connection.close()
                    continue
                ended = os.pidfd_open(pid)
                waiting[ended] = connection, pid
                selector.register(ended, selectors.EVENT_READ)
                selector.register(connection, selectors.EVENT_READ, ended)
            else:
                ended = key.fileobj if key.data is None else key.data
                if ended not in waiting:
                    continue
                connection, pid = waiting.pop(ended)
                # The client has ended, and so must its command.
                if key.data is not None:
                    os.kill(pid, signal.SIGKILL)
                status = forked.wait(pid)
                with contextlib.suppress(OSError):
                    connection.send(str(status).encode())
                selector.unregister(ended)
                selector.unregister(connection)
                os.close(ended)
                connection.close()


def _answer(connection: socket.socket, others: list, interrupts: list[int]) -> int | None:
    """Fork for a request; return the pid, None without a fork. Raises _Forked in the fork."""
    request, descriptors, _, _ = socket.recv_fds(connection, _MOST_REQUEST_BYTES, 3)
    if len(descriptors) != 3:
        return None
    asked = json.loads(request)
    _load(asked["words"])
    parent = os.pidfd_open(os.getpid())
    # An interrupt during the fork reaches the fork once its handler is set.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    pid = None if interrupts else os.fork()
    if pid != 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for descriptor in (parent, *descriptors):
            os.close(descriptor)
        return pid
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    forked.die_with(parent)
    for other in (connection, *others):
        other.close()
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.argv[1:] = asked["words"]
    raise _Forked


def _load(words: Sequence[str]) -> None:
    """Import a command's module and call its `preload`, which fills caches that forks share."""
    name, *rest = words
    if name not in COMMANDS:
        return
    module = import_module(f"deathmatch.{COMMANDS[name].module}")
    # The command reports the error; another command may not need what is missing.
    with contextlib.suppress(UserError, OSError):
        getattr(module, "preload", lambda _: None)(rest)
    # So that the forks share these pages.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    main()
