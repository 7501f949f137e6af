"""Samples of the kernel's counters, against what /proc and this test itself say."""

import os
import socket
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deathmatch.measure import sampler

pytestmark = pytest.mark.alone

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
    assert sampler.counters(NETSTAT) == {
        ("TcpExt", "SyncookiesSent"): 3, ("TcpExt", "ListenOverflows"): 41,
        ("TcpExt", "ListenDrops"): 45, ("IpExt", "InNoRoutes"): -1,
    }  # fmt: skip
    found = sampler.counters(SOCKSTAT)
    assert found["TCP", "tw"] == 250 and found["TCP", "alloc"] == 4
    assert found["sockets", "used"] == 12 and found["UDP", "mem"] == 0


WORD = st.from_regex(r"[A-Z][A-Za-z]{2,9}", fullmatch=True)


@given(st.dictionaries(WORD, st.dictionaries(WORD, st.integers(-1, 2**63), min_size=1), min_size=1))
def test_counters_round_trip(groups):
    text = "".join(
        f"{group}: {' '.join(found)}\n{group}: {' '.join(map(str, found.values()))}\n"
        for group, found in groups.items()
    )
    assert sampler.counters(text) == {
        (group, name): value for group, found in groups.items() for name, value in found.items()
    }


def watching(port: int = 1, cpus: list[int] = ()) -> sampler.Sampler:
    """Return a sampler that takes this test for the server, and its namespace for both."""

    def pids(side: str) -> list[int]:
        return [os.getpid()] * (side == "server")

    return sampler.Sampler(0.1, time.monotonic_ns(), port, os.getpid(), pids, cpus)


def burn() -> None:
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        pass


def test_sample_has_every_column_and_counts_this_process():
    taking = watching()
    with taking:
        with taking.offering(123, 0.1):
            held = [socket.socket() for _ in range(50)]
            busy = threading.Thread(target=burn)
            busy.start()
            busy.join()
        time.sleep(0.3)
    for connection in held:
        connection.close()
    assert all(list(row) == list(sampler.SCHEMA) for row in taking.rows)
    during = [row for row in taking.rows if row["offered_rate_rps"] == 123]
    first, last = during[0], during[-1]
    assert 290e6 < last["server_cpu_ns"] - first["server_cpu_ns"] < 1500e6
    assert last["server_descriptors"] >= first["server_descriptors"] + 50
    assert last["server_rss_bytes"] > 10e6 and last["client_cpu_ns"] == 0
    assert taking.rows[-1]["offered_rate_rps"] is None
    times = [row["time_us"] for row in taking.rows]
    assert times == sorted(times)
    assert len(taking.rows) >= 5


def test_sample_sees_a_full_accept_queue_and_refused_connections():
    with socket.create_server(("127.0.0.1", 0), backlog=2) as listener:
        port = listener.getsockname()[1]
        taking = watching(port)
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


def test_the_syn_queue_is_not_asked_for_so_often_that_it_disturbs():
    taking = watching()
    taking.take()
    taking.take()
    time.sleep(2)
    taking.take()
    assert [row["syn_queue_connections"] for row in taking.rows] == [0, None, 0]


def test_descriptors_are_all_counted():
    held = [socket.socket() for _ in range(300)]
    assert abs(sampler.usage(os.getpid())["descriptors"] - len(os.listdir("/proc/self/fd"))) <= 1
    for connection in held:
        connection.close()


def test_cpu_modes_of_the_servers_cpus():
    cpu = min(os.sched_getaffinity(0))
    alone, all_of_them = watching(cpus=[cpu]), watching(cpus=list(range(os.cpu_count())))
    alone.take()
    busy = subprocess.Popen(
        ["taskset", "--cpu-list", str(cpu), sys.executable, "-c", "while True: pass"]
    )
    time.sleep(1)
    busy.kill()
    busy.wait()
    for taking in (alone, all_of_them):
        taking.take()
    before, after = alone.rows
    grown = {
        mode: after[f"server_cpus_{mode}_us"] - before[f"server_cpus_{mode}_us"]
        for mode in ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    }
    assert 0.8e6 < sum(grown.values()) < 3e6
    assert grown["idle"] < 0.5 * sum(grown.values())
    (whole,) = all_of_them.rows
    assert abs(whole["server_cpus_user_us"] - whole["cpu_user_us"]) <= 50_000
    assert 0 <= whole["load_average"] == pytest.approx(os.getloadavg()[0], abs=1)


def test_nothing_is_sampled_while_paused():
    taking = watching()
    with taking, taking.paused():
        before = len(taking.rows)
        time.sleep(0.4)
        assert len(taking.rows) == before


def test_process_that_is_gone_uses_nothing():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert set(sampler.usage(child.pid).values()) == {0}
