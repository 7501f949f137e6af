"""The accept queue: ways of accepting, settings and accounts that are what they say."""

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from conftest import ROOT, Tree, copy_tree, wait_for

from deathmatch.analysis import accepting

CONNECTIONS = 8


@pytest.fixture(scope="module")
def measured(tmp_path_factory, network) -> tuple[Path, dict[int, dict]]:
    """The folder of an overloaded server's tables, and its trials by tcp_abort_on_overflow."""
    tree = Tree(copy_tree(tmp_path_factory.mktemp("accept") / "tree"), network)
    levels = "abort_on_overflow = [0, 1]"
    tree.dataset("busy", ["acceptors"], [6000], 1, levels=levels, experiment="accept-queue")
    tree.replace("experiments/accept-queue.toml", "timeout_s = 8", "timeout_s = 4")
    tree.snakemake("data/busy/accept-queue/points.parquet", dataset="busy").succeeded()
    folder = tree.path / "data/busy/accept-queue"
    records = [json.loads(path.read_text()) for path in folder.glob("*/*/*/trial.json")]
    return folder, {found["spec"]["factors"]["abort_on_overflow"]: found for found in records}


def points(measured, abort: int) -> pl.DataFrame:
    return pl.read_parquet(measured[0] / "points.parquet").filter(abort_on_overflow=abort)


@pytest.mark.parametrize("abort", [0, 1])
def test_settings_are_in_force_and_each_request_has_its_work(measured, abort):
    found = measured[1][abort]
    assert found["outcome"] == "measured", found["reason"]
    assert found["sysctl"]["server"]["net.ipv4.tcp_abort_on_overflow"] == str(abort)
    assert found["sysctl"]["server"]["net.ipv4.tcp_syncookies"] == "1"
    (point,) = points(measured, abort).to_dicts()
    assert point["server_listen_overflows"] > 0 and point["accept_queue_connections_max"] <= 129
    # On a link without delay a handshake ends before the next begins, so that a full queue shows
    # at the SYN, which is dropped, and seldom at the last ACK, which may be answered by a reset.
    most = point["server_resets_sent"] if abort else 0
    assert point["errors_connection_reset"] <= most
    assert 200_000 < point["server_cpu_ns"] / point["server_passive_opens"] < 400_000


def test_account_is_whole_and_agrees_with_the_kernel(measured):
    times = pl.read_parquet(measured[0] / "times.parquet")
    for abort in (0, 1):
        mine = points(measured, abort)
        mine_times = times.filter(abort_on_overflow=abort)
        found = accepting.outcomes(mine, mine_times, ["server"])
        assert found["outcome"].to_list() == accepting.OUTCOMES
        assert found["share_percent"].sum() == pytest.approx(100, abs=0.5)
    # Without resets, what the times do not tell are the retries of those that timed out.
    (point,) = points(measured, 0).to_dicts()
    times = times.filter(abort_on_overflow=0)
    answered = accepting.outcomes(points(measured, 0), times, ["server"])
    rest = point["client_syn_retransmissions"] - accepting.implied_retries(answered)
    slack = 0.02 * point["connections"]
    # A request that is sent again may be answered when a resent SYN would be. Only a time between a
    # SYN and the first repetition of its request is sure to be that of the SYN.
    time_s = pl.col("time_us") / 1e6
    within_s = accepting.REQUEST_RETRIES_S[0]
    prompt = pl.any_horizontal(time_s.is_between(at, at + within_s) for at in accepting.SYN_S)
    late = accepting.outcomes(points(measured, 0), times.filter(~prompt), ["server"])
    doubtful = accepting.implied_retries(late)
    assert -slack - doubtful <= rest <= 3 * point["errors_client_timeout"] + slack
    (where,) = accepting.drops(points(measured, 0)).to_dicts()
    dropped = ("syns_syn_queue", "syns_accept_queue", "acks_accept_queue")
    assert sum(where[what] for what in dropped) == pytest.approx(
        point["server_listen_drops"], abs=slack
    )


def test_outcomes_of_known_times():
    key = {"server": ["x"], "connections": [10], "errors_client_timeout": [2]}
    known = pl.DataFrame(key | {"errors_connection_reset": [1]})
    times_us = [900, 999_990, 1_000_010, 2_999_990, 3_000_010, 6_999_990, 7_000_010]
    times = pl.DataFrame(
        {"server": "x", "quantity": "connection_time", "time_us": times_us, "count": 1}
    )
    found = accepting.outcomes(known, times, ["server"])
    assert found["connections"].to_list() == [2, 2, 2, 1, 2, 1]
    assert found["share_percent"].sum() == pytest.approx(100)
    assert accepting.implied_retries(found) == 2 * 1 + 2 * 2 + 1 * 3


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """A folder with the server and the library that tells what it does."""
    out = tmp_path_factory.mktemp("acceptors")
    build = ["cc", "-O2", "-Wall", "-Wextra", "-Werror"]
    server = [ROOT / "servers/acceptors/acceptors.c", "-pthread", "-o", out / "acceptors", "-lm"]
    library = [ROOT / "tests/calls.c", "-shared", "-fPIC", "-o", out / "calls.so"]
    for words in (server, library):
        subprocess.run([*build, *words], check=True)
    return out


@contextlib.contextmanager
def serving(programs: Path, *words: str) -> Iterator[tuple[subprocess.Popen, int]]:
    """Start the server with a backlog and a way of accepting; yield it, and its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [programs / "acceptors", "127.0.0.1", str(port), *words, "0"], stderr=subprocess.PIPE,
        env=os.environ | {"LD_PRELOAD": str(programs / "calls.so")},
    )  # fmt: skip
    try:
        wait_for(lambda: listening(port), "the server listens")
        yield server, port
    finally:
        server.kill()
        server.communicate()


def listening(port: int) -> list[str]:
    query = ["ss", "--no-header", "--listening", "--tcp", "--numeric", f"sport = :{port}"]
    done = subprocess.run(query, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("way", "sockets", "threads"),
    [("one", 1, 1), ("many", 1, 1), ("several", 1, 4), ("herd", 1, 4), ("reuseport", 4, 4)],
)
def test_way_of_accepting_is_what_it_says(programs, way, sockets, threads):
    with serving(programs, "128", way) as (server, port):
        wait_for(lambda: len(listening(port)) == sockets, f"{sockets} listening sockets")
        tasks = Path(f"/proc/{server.pid}/task")
        wait_for(lambda: len(list(tasks.iterdir())) == threads, f"{threads} threads")
        server.send_signal(signal.SIGSTOP)
        clients = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(CONNECTIONS)]
        for client in clients:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        server.send_signal(signal.SIGCONT)
        for client in clients:
            assert client.makefile("rb").read().endswith(b"\r\n\r\nHello, world")
            client.close()
        server.kill()
        calls = server.stderr.read().decode()
    assert calls.count("a") == CONNECTIONS, calls
    if threads == 1:
        at_a_time = max(len(run) for run in re.findall("a+", calls))
        assert at_a_time == (CONNECTIONS if way == "many" else 1), calls


def test_request_in_pieces_is_answered_once(programs):
    with serving(programs, "1", "one") as (_, port):
        client = socket.create_connection(("127.0.0.1", port), 5)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in (b"GET / HTTP/1.1\r", b"\nA: b\r\n\r", b"\r\n\r"):
            client.sendall(piece)
            assert select.select([client], [], [], 0.1)[0] == []
        client.sendall(b"\n")
        assert client.makefile("rb").read().count(b"HTTP/1.1 200 OK") == 1
