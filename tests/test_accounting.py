"""Servers of several processes cost what they cost, and shared pages are counted once."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import HUNG_S, wait_for
from servers.processes import BURNT_S, REQUESTS, SHARED_BYTES, WORKERS

from deathmatch.hosts import accounting
from deathmatch.hosts.accounting import Accounting
from deathmatch.hosts.host import Host

SERVER = Path(__file__).with_name("servers") / "processes.py"
# The last worker still lives, or has yet to be waited for.
ASKED = 5 * REQUESTS + 1


@pytest.fixture
def group(here: Host) -> Iterator[Accounting]:
    counted = accounting.apply(here)
    if not counted.group:
        pytest.skip(f"no cgroup can be made here: {counted.refused}")
    yield counted
    counted.end()


@contextmanager
def serving(here: Host, kind: str, counted: Accounting) -> Iterator[tuple[int, int]]:
    """Start a server; yield its port and the pid of its first process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [*counted.prefix(), sys.executable, str(SERVER), kind, "127.0.0.1", str(port)]
    process = here.start(words)
    try:
        wait_for(lambda: ask(port), "it answers")
        yield port, process.pid
    finally:
        # Without the first one, no more are started.
        here.kill([process.pid], HUNG_S)
        here.kill(pids(here, process.pid), HUNG_S)
        process.wait(HUNG_S)


def pids(here: Host, leader: int) -> list[int]:
    """The server's processes now; those that ended and wait for their parent have no memory."""
    return [int(pid) for pid in here.run("sh", "-c", f"pgrep -s {leader} || :").split()]


def ask(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), HUNG_S) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return connection.recv(100).startswith(b"HTTP/1.1 200 ")
    except ConnectionRefusedError:
        return False


def spent_s(here: Host, kind: str, counted: Accounting) -> float | None:
    """Return the CPU time that ASKED requests cost."""
    with serving(here, kind, counted) as (port, leader):

        def used_ns() -> int | None:
            sample = here.sample(pids(here, leader), cpus=[0], group=counted.file)
            return sample["usage"]["cpu_ns"]

        before_ns = used_ns()
        assert all(ask(port) for _ in range(ASKED))
        after_ns = used_ns()
    return None if before_ns is None or after_ns is None else (after_ns - before_ns) / 1e9


@pytest.mark.parametrize("kind", ["recycles", "forks", "orphans"])
def test_a_cgroup_counts_processes_that_ended(here, group, kind):
    assert 0.95 * ASKED * BURNT_S < spent_s(here, kind, group) < 6 * ASKED * BURNT_S


@pytest.mark.parametrize("kind", ["recycles", "forks"])
def test_without_a_cgroup_ended_children_count(here, kind):
    # Ticks of 10 ms, and a child that ended and was not waited for.
    spent = spent_s(here, kind, Accounting())
    assert 0.85 * ASKED * BURNT_S < spent < 6 * ASKED * BURNT_S


def test_children_whose_ends_are_ignored_leave_the_time_unknown(here):
    assert spent_s(here, "orphans", Accounting()) is None


def test_a_shared_buffer_is_counted_once_and_seldom(here):
    """The kernel looks at every page: a larger process is sampled less often."""
    with serving(here, "shares", Accounting()) as (_, leader):
        wait_for(lambda: len(pids(here, leader)) == WORKERS + 1, "all began")
        running = pids(here, leader)
        # Settled: how long the tests before it read shared pages says when the next may be.
        used = here.sample(running, cpus=[0], settled=True)["usage"]
        assert used["rss_bytes"] > 0.9 * WORKERS * SHARED_BYTES
        assert SHARED_BYTES < used["pss_bytes"] < 2.5 * SHARED_BYTES
        looked = [here.sample(running, cpus=[0])["usage"]["pss_bytes"] for _ in range(50)]
        assert looked.count(None) > 25
        wait_for(lambda: here.sample(running, cpus=[0])["usage"]["pss_bytes"], "it is looked at")


def test_groups_that_schedule_are_not_made_only_to_count():
    line = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0"
    assert accounting._one_hierarchy(line)
    assert not accounting._one_hierarchy(line.replace("cpu,cpuacct 0", "cpuacct 0"))
