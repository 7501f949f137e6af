"""What one wait costs by the number of idle descriptors: select(2), poll(2) and epoll_wait(2).

`instruments.descriptors` calls it in a sandbox. The C library's functions are called through
ctypes on memory that is allocated once; its cost is the same for every number of descriptors.
"""

import contextlib
import ctypes
import functools
import os
import random
import resource
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from deathmatch.errors import UserError
from deathmatch.hosts.netns_testbed import run

MECHANISMS = ("select", "poll", "epoll")
# The caches as the wait before left them; after CACHE_BYTES were written; woken from sleep.
HOT, COLD, ASLEEP = "hot", "cold", "asleep"
STATES = (HOT, COLD, ASLEEP)
WAITS = {HOT: 100, COLD: 15, ASLEEP: 25}
# More than any second-level cache, and than one core's share of a third-level cache.
CACHE_BYTES = 64 << 20
# How long a wait sleeps: past the time that a CPU takes to go idle.
SLEEP_S = 0.002
BACKLOG = 1024
# The process's own files, the listener and the peer.
SPARE_DESCRIPTORS = 64
EVENTS, EVENT_BYTES = 64, 12
FOREVER = -1

Wait = Callable[[], int]


class PollFd(ctypes.Structure):
    """struct pollfd of poll(2)."""

    _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short)]


def most_idle() -> int:
    """Raise this process's limit of open files to the hard one; return how many may be idle."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard - SPARE_DESCRIPTORS


def life(idle: Sequence[int], repetition: int, cpus: dict[str, list[int]]) -> list[dict]:
    """Return a reading for each mechanism and state at each number of idle descriptors.

    {"mechanism", "state", "idle", "repetition", "waits", "wait_ns"}: the median over `waits` waits
    of the thread's CPU time in one. The descriptors are TCP connections over loopback; the last one
    has a byte to read, so that each other one is looked at. Numbers and mechanisms come in an order
    that is drawn. UserError if a wait finds something else.
    """
    run("ip", "link", "set", "lo", "up")
    most_idle()
    drawn = random.Random(repetition)
    readings = []
    with _peer(cpus) as (listener, peer):
        os.sched_setaffinity(0, cpus["server"])
        for count in drawn.sample(list(idle), len(idle)):
            with _connections(listener, peer, count) as connections:
                cases = [(way, state) for way in MECHANISMS for state in STATES]
                for way, state in drawn.sample(cases, len(cases)):
                    with _wait(way, [connection.fileno() for connection in connections]) as wait:
                        wait_ns = _median_ns(wait, state, peer, connections[-1])
                    readings.append({
                        "mechanism": way, "state": state, "idle": count, "repetition": repetition,
                        "waits": WAITS[state], "wait_ns": wait_ns,
                    })  # fmt: skip
    return readings


def _median_ns(wait: Wait, state: str, peer: socket.socket, active: socket.socket) -> int:
    if state != ASLEEP:
        _ask(peer, _BYTE)
        active.recv(1, socket.MSG_PEEK)
    cache = ctypes.create_string_buffer(CACHE_BYTES) if state == COLD else None
    times_ns = []
    for number in range(WAITS[state]):
        if state == ASLEEP:
            _ask(peer, _BYTE_LATER)
        if cache:
            ctypes.memset(cache, number, CACHE_BYTES)
        began_ns = time.thread_time_ns()
        ready = wait()
        times_ns.append(time.thread_time_ns() - began_ns)
        if ready != 1:
            raise UserError(f"a wait found {ready} ready descriptors, not one", f"state {state}")
        if state == ASLEEP:
            active.recv(1)
    if state != ASLEEP:
        active.recv(1)
    return round(median(times_ns))


@contextlib.contextmanager
def _wait(mechanism: str, descriptors: list[int]) -> Iterator[Wait]:
    """Yield a function that waits until one of the descriptors can be read."""
    library = ctypes.CDLL(None, use_errno=True)
    if mechanism == "poll":
        asked = (PollFd * len(descriptors))(*((fd, select.POLLIN, 0) for fd in descriptors))
        count = ctypes.c_ulong(len(descriptors))
        yield functools.partial(library.poll, asked, count, FOREVER)
    elif mechanism == "select":
        yield _selecting(library, descriptors)
    else:
        with select.epoll() as epoll:
            for fd in descriptors:
                epoll.register(fd, select.EPOLLIN)
            events = ctypes.create_string_buffer(EVENTS * EVENT_BYTES)
            yield functools.partial(library.epoll_wait, epoll.fileno(), events, EVENTS, FOREVER)


def _selecting(library: ctypes.CDLL, descriptors: list[int]) -> Wait:
    # The kernel takes more than FD_SETSIZE, in whole words; the set has to be made for each call.
    bits = bytearray((max(descriptors) // 64 + 1) * 8)
    for fd in descriptors:
        bits[fd // 8] |= 1 << fd % 8
    wanted, asked, top = bytes(bits), ctypes.create_string_buffer(len(bits)), max(descriptors) + 1

    def wait() -> int:
        ctypes.memmove(asked, wanted, len(wanted))
        return library.select(top, asked, None, None, None)

    return wait


# Requests to a peer: open a number of connections, send a byte at once or later, close all.
_OPEN, _BYTE, _BYTE_LATER, _CLOSE = range(4)
_WORDS = struct.Struct("ii")


def _ask(peer: socket.socket, what: int, count: int = 0) -> None:
    peer.sendall(_WORDS.pack(what, count))


@contextlib.contextmanager
def _peer(cpus: dict[str, list[int]]) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield a listener, and a socket to a process that connects to it; it ends with the block."""
    with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as listener:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if not pid:
            ours.close()
            os.sched_setaffinity(0, cpus["client"])
            _serve(theirs, listener.getsockname())
            os._exit(0)
        theirs.close()
        try:
            yield listener, ours
        finally:
            ours.close()
            os.waitpid(pid, 0)


def _serve(control: socket.socket, address: tuple[str, int]) -> None:
    held: list[socket.socket] = []
    while words := control.recv(_WORDS.size, socket.MSG_WAITALL):
        what, count = _WORDS.unpack(words)
        if what == _OPEN:
            held = [socket.create_connection(address) for _ in range(count)]
        elif what == _CLOSE:
            _reset(held)
        else:
            time.sleep(SLEEP_S if what == _BYTE_LATER else 0)
            held[-1].send(b"x")


@contextlib.contextmanager
def _connections(
    listener: socket.socket, peer: socket.socket, idle: int
) -> Iterator[list[socket.socket]]:
    """Yield the idle connections and, with the highest descriptor, the one that will be active."""
    _ask(peer, _OPEN, idle + 1)
    held = [listener.accept()[0] for _ in range(idle + 1)]
    try:
        yield held
    finally:
        _ask(peer, _CLOSE)
        _reset(held)


def _reset(held: list[socket.socket]) -> None:
    # No TIME_WAIT: the next number needs the ports.
    for connection in held:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
