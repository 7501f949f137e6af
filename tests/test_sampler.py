"""Samples of the kernel's counters, compared with /proc and with known loads."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import HUNG_S, wait_for

from deathmatch.agent import kernel
from deathmatch.agent.keeper import Settings
from deathmatch.agent.kernel import Sampling
from deathmatch.data import kernel_samples
from deathmatch.hosts import opening
from deathmatch.hosts.connection import HostLost
from deathmatch.hosts.host import Host
from deathmatch.measure import sampler

# proc(5)'s three shapes, cut from a real machine.
NETSTAT = """\
TcpExt: SyncookiesSent ListenOverflows ListenDrops
TcpExt: 3 41 45
IpExt: InNoRoutes
IpExt: -1
"""
SOCKSTAT = """\
sockets: used 12
TCP: inuse 3 orphan 0 tw 250 alloc 4 mem 2
UDP: inuse 0 mem 0
"""


def test_counters_of_known_text():
    assert kernel.parse(NETSTAT) == {
        "TcpExt SyncookiesSent": 3, "TcpExt ListenOverflows": 41, "TcpExt ListenDrops": 45,
        "IpExt InNoRoutes": -1,
    }  # fmt: skip
    found = kernel.parse(SOCKSTAT)
    assert found["TCP tw"] == 250 and found["TCP alloc"] == 4
    assert found["sockets used"] == 12 and found["UDP mem"] == 0


SILENCE_S = 600.0
BUSY = """
import socket, time
held = [socket.socket() for _ in range(50)]
while time.process_time() < 0.4: pass
print("held", flush=True)
input()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("agent")


def session(folder: Path) -> Host:
    """Return a host in this network: what it is asked to start is the server."""
    return opening.through("server", [], Settings(str(folder), SILENCE_S, lock=False))


@pytest.fixture(scope="module")
def server(folder):
    with session(folder) as host:
        yield host


def watching(server: Host, port: int = 1, cpus: list[int] = ()) -> sampler.Sampler:
    """Return a sampler for which the agent, the first process there, is the load generator."""
    return sampler.Sampler(0.1, time.monotonic_ns(), port, server, [server], lambda _: [1], cpus)


def test_sample_has_every_column_and_counts_the_server(server: Host):
    taking = watching(server)
    with taking:
        with taking.offering(123, 0.1):
            busy = server.start([sys.executable, "-c", BUSY], talk=True)
            assert busy.receive(HUNG_S) == "held\n"
        wait_for(lambda: taking.rows[-1]["offered_rate_rps"] is None, "one after the rate")
        busy.finish(HUNG_S)
        ended = len(taking.rows)
        wait_for(lambda: len(taking.rows) > ended + 1, "samples go on")
    assert all(list(row) == list(kernel_samples.SCHEMA) for row in taking.rows)
    during = [row for row in taking.rows if row["offered_rate_rps"] == 123]
    first, last = during[0], during[-1]
    assert {first[f"server_{what}"] for what in kernel.USED} == {0}, "nothing runs yet"
    assert 400e6 <= last["server_cpu_ns"] < 1500e6
    assert 50 <= last["server_descriptors"] < 70 and last["server_threads"] == 1
    assert last["server_rss_bytes"] > 5e6
    assert last["client_cpu_ns"] > 0 and last["client_rss_bytes"] > 10e6
    assert taking.rows[-1]["server_threads"] == 0
    times = [row["time_us"] for row in taking.rows]
    assert times == sorted(times)
    assert len(taking.rows) >= 5


def test_a_host_that_is_lost_ends_the_samples(folder: Path):
    """The caller that waits for the host gets the error, not the sampler's thread."""
    with session(folder) as host:
        taking = watching(host)
        with taking:
            wait_for(lambda: taking.rows, "the first sample")
            with pytest.raises(HostLost), taking.offering(123, 0):
                host.agent._popen.kill()
                wait_for(host.agent.lost, "it is lost")
        assert all(list(row) == list(kernel_samples.SCHEMA) for row in taking.rows)


def test_sample_sees_a_full_accept_queue_and_refused_connections(server: Host):
    with socket.create_server(("127.0.0.1", 0), backlog=2) as listener:
        port = listener.getsockname()[1]
        taking = watching(server, port)
        taking.take()
        waiting = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
        taking.take()
        for connection in waiting:
            connection.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    taking.take()
    before, full, after = taking.rows
    assert (before["accept_queue_connections"], before["accept_queue_limit"]) == (0, 2)
    assert (full["accept_queue_connections"], full["accept_queue_limit"]) == (2, 2)
    assert after["accept_queue_limit"] == 0
    assert after["client_attempt_fails"] >= before["client_attempt_fails"] + 1
    assert full["server_passive_opens"] >= before["server_passive_opens"] + 2


def test_the_syn_queue_is_read_rarely():
    sampling = Sampling()
    with socket.create_server(("127.0.0.1", 0), backlog=7) as listener:
        port = listener.getsockname()[1]
        taken = [sampling.take([], port)["queues"] for _ in range(100)]
        assert taken[0] == [0, 7, 0] and [0, 7, None] in taken
        wait_for(lambda: sampling.take([], port)["queues"] == [0, 7, 0], "it is asked for again")


def test_descriptors_are_all_counted():
    held = [socket.socket() for _ in range(100)]
    assert abs(kernel.usage(os.getpid())["descriptors"] - len(os.listdir("/proc/self/fd"))) <= 1
    for connection in held:
        connection.close()


def test_cpu_modes_of_the_servers_cpus(server: Host):
    cpu = min(os.sched_getaffinity(0))
    one = watching(server, cpus=[cpu])
    all_of_them = watching(server, cpus=list(range(os.cpu_count())))
    one.take()
    busy = subprocess.Popen(
        ["taskset", "--cpu-list", str(cpu), sys.executable, "-c", "while True: pass"]
    )
    time.sleep(1)
    busy.kill()
    busy.wait()
    for taking in (one, all_of_them):
        taking.take()
    before, after = one.rows
    grown = {
        mode: after[f"server_cpus_{mode}_us"] - before[f"server_cpus_{mode}_us"]
        for mode in kernel.MODES
    }
    # Within the kernel's ticks.
    lasted_us = after["time_us"] - before["time_us"]
    assert sum(grown.values()) == pytest.approx(lasted_us, rel=0.2)
    assert grown["idle"] < 0.5 * sum(grown.values())
    (whole,) = all_of_them.rows
    assert abs(whole["server_cpus_user_us"] - whole["cpu_user_us"]) <= 50_000
    assert 0 <= whole["load_average"] == pytest.approx(os.getloadavg()[0], abs=1)


def test_process_that_is_gone_uses_nothing():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert set(kernel.usage(child.pid).values()) == {0}
