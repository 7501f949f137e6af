"""What a connection costs the kernel: readings, states held for real, and what is made of them."""

import json
import signal
import socket
import struct

import polars as pl
import pytest
from conftest import (
    HUNG_S,
    Tree,
    descendants,
    ended,
    network_namespaces,
    own_network_namespaces,
    traces,
    wait_for,
)

from deathmatch.analysis import connection_memory
from deathmatch.errors import UserError
from deathmatch.instruments.connections import command, end, kernel_memory, run
from deathmatch.instruments.connections.kernel_memory import Cache
from deathmatch.instruments.connections.states import LIVES, STATES

SLABINFO = """\
slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables …
TCP                   79    156   2368   13    8 : tunables    0    0    0 : slabdata 12 12 0
sock_inode_cache     206    266    832   19    4 : tunables    0    0    0 : slabdata 14 14 0
"""
MEMINFO = "MemTotal:  100 kB\nMemFree:  7 kB\nMemAvailable:   9 kB\nSlab: 3 kB\nHugePages_Free: 0\n"


def test_slabs_are_read_with_the_share_of_a_slab_that_an_object_takes():
    found = kernel_memory.caches(SLABINFO)
    page = kernel_memory.PAGE_BYTES
    assert found["TCP"] == Cache(79, 2368, 8 * page / 13)
    assert found["sock_inode_cache"] == Cache(206, 832, 4 * page / 19)
    with pytest.raises(ValueError, match=r"version: 1\.1"):
        kernel_memory.caches(SLABINFO.replace("2.1", "1.1"))


def test_memory_is_read_in_bytes_and_what_the_kernel_lacks_is_left_out():
    assert kernel_memory.meminfo(MEMINFO) == {
        "MemFree": 7168, "MemAvailable": 9216, "Slab": 3072,
    }  # fmt: skip


def test_a_cache_may_be_new_shrink_or_stay():
    before = {"a": Cache(5, 1, 1.0), "b": Cache(5, 1, 1.0), "c": Cache(5, 1, 1.0)}
    after = {"a": Cache(9, 1, 1.0), "b": Cache(2, 1, 1.0), "c": Cache(5, 1, 1.0)}
    new = {"d": Cache(4, 1, 1.0)}
    assert kernel_memory.gained(before, after | new) == {"a": 4, "b": -3, "d": 4}


@pytest.mark.parametrize(
    ("connections", "most", "held"),
    [(10, 20, [10]), (20, 20, [20]), (21, 20, [11, 10]), (7, 3, [3, 2, 2])],
)
def test_connections_are_shared_by_the_fewest_processes(connections, most, held):
    assert run.shares(connections, most) == held


def test_each_syn_is_whole_and_has_an_end_of_its_own():
    sources = ["198.19.0.1", "198.19.0.2"]
    packets = list(end.syns("10.77.0.1", 8080, sources, end.PORTS + 2))
    ends = {(packet[12:16], packet[20:22]) for packet in packets}
    assert len(ends) == len(packets)
    for packet in (packets[0], packets[-1]):
        header, segment = packet[:20], packet[20:]
        assert socket.inet_ntoa(header[16:20]) == "10.77.0.1"
        assert struct.unpack("!HH", segment[:4])[1] == 8080 and segment[13] == 0x02
        # RFC 9293, 3.1: with its checksum, a segment and its pseudo header add up to all ones.
        words = header[12:20] + struct.pack("!BBH", 0, 6, len(segment)) + segment
        total = sum(struct.unpack(f"!{len(words) // 2}H", words))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        assert total == 0xFFFF


def objects(**repetitions: list[float]) -> pl.DataFrame:
    """Return objects per connection of caches of 10 bytes, a number for each repetition."""
    rows = [
        {"life": "whole", "state": "a", "connections": 100, "repetition": n, "cache": cache,
         "per_connection": each, "size_bytes": 8, "share_bytes": 10.0}
        for cache, values in repetitions.items()
        for n, each in enumerate(values) if each
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=connection_memory.SCHEMA)


def test_what_others_on_the_machine_took_is_not_counted():
    found = connection_memory.counted(
        objects(
            TCP=[2, 2.01, 1.99], filp=[2.1, 2, 1.9], proc_inode_cache=[1, 1, 1],
            dentry=[0.9, 2.1, 1], buffer_head=[3, 3, 3], skbuff_head_cache=[1, 0, 1],
            kmalloc=[0.02, 0.02, 0.02],
        )
    )  # fmt: skip
    assert found["cache"].unique().sort().to_list() == ["TCP", "filp"]
    parts = dict(found.select("cache", "part").rows())
    assert parts == {"TCP": "socket", "filp": "file"}


def test_bytes_are_the_sum_over_caches_with_an_interval_over_repetitions():
    found = connection_memory.by_state(objects(TCP=[2, 2.2, 2.1], filp=[1, 1, 1]))
    row = found.row(0, named=True)
    assert (row["trials"], row["median"], row["low"], row["high"]) == pytest.approx((3, 31, 30, 32))
    parts = connection_memory.by_part(objects(TCP=[2, 2.2, 2.1], filp=[1, 1, 1]))
    assert dict(parts.select("part", "bytes").rows()) == pytest.approx({"socket": 21, "file": 10})


def test_the_committed_record_is_of_every_state_and_of_200000_connections():
    record = connection_memory.load("reference")
    assert {one["state"] for one in record.readings} == set(STATES)
    assert record.most >= 200_000
    for one in record.readings:
        wanted = STATES[one["state"]].held
        assert all(one["held"][name] >= n * one["connections"] for name, n in wanted.items())
    # Its own path, whatever the clone is called.
    assert record.source == "data/connections/reference.json"
    used = connection_memory.state_bytes(
        record.objects, connection_memory.ESTABLISHED, record.connections
    )
    large = connection_memory.state_bytes(
        record.objects, connection_memory.ESTABLISHED, record.most
    )
    # A TCP socket for each end, at least, and as much with many connections as with few.
    assert used.estimate > 2 * 2000
    assert large.estimate == pytest.approx(used.estimate, rel=0.05)


def test_a_record_that_is_none_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("deathmatch.analysis.committed.ROOT", tmp_path)
    with pytest.raises(UserError, match=r"no record of connections can be read"):
        connection_memory.load("nothing")


def test_the_memory_that_is_left_limits_what_is_held():
    few, why = command.most_connections(1e-6)
    assert few < 20 and "--memory-share" in why
    many, _ = command.most_connections(0.5)
    assert many > 1000


def test_the_plan_repeats_each_life_and_holds_many_at_the_end():
    rounds = command.readings(10, 90, 2)
    assert [(one.life, one.connections) for one in rounds] == (
        [(life, 10) for life in LIVES] * 2 + [(command.HELD_LIFE, 90)] * command.HELD_REPETITIONS
    )
    assert len(command.readings(10, 0, 2)) == 2 * len(LIVES)


HELD = 2000


@pytest.mark.alone
def test_every_state_is_held_and_read(someones_tree: Tree):
    """As a user too, who may not read the caches, and gets a record without them."""
    machine = traces()
    words = ("test", "--connections", HELD, "--held", 0, "--repetitions", 1)
    done = someones_tree.deathmatch("connections", *map(str, words)).succeeded()
    record = json.loads((someones_tree.path / "data/connections/test.json").read_text())
    found = {one["state"]: one for one in record["readings"]}
    assert set(found) == set(STATES)
    for name, one in found.items():
        for counter, each in STATES[name].held.items():
            assert one["held"][counter] >= each * HELD, name
    assert traces() == machine
    # What is in them is not compared: other programs on this machine have sockets too.
    seen = {one["objects"] is not None for one in found.values()}
    assert seen == {"only root may read" not in done.text}


def test_nothing_is_left_of_a_run_that_is_killed(tree: Tree):
    machine = traces()
    process = tree.start(
        "python", "-m", "deathmatch", "connections", "test", "--connections", str(HELD),
        "--held", "0",
    )  # fmt: skip

    def both_namespaces() -> set[str]:
        below = descendants(process.pid)
        spaces = own_network_namespaces(below) if below else set()
        return spaces if len(spaces) == 2 else set()

    spaces = wait_for(both_namespaces, "a process in each of two network namespaces")
    inside = descendants(process.pid)
    process.kill()
    assert process.wait(HUNG_S) == -signal.SIGKILL
    wait_for(lambda: ended(inside), f"{inside} ended")
    wait_for(lambda: not spaces & network_namespaces(), "its network namespaces are gone")
    assert traces() == machine
    assert not (tree.path / "data/connections/test.json").exists()


def test_a_life_that_cannot_be_held_says_so_and_keeps_what_was_measured(tree: Tree):
    tree.replace(
        "deathmatch/instruments/connections/states.py",
        '{"server_syn_received": 1}',
        '{"server_syn_received": 2}',
    )
    tree.replace("deathmatch/instruments/connections/run.py", "= 0.4, 25, 0.005", "= 0.4, 2, 0.005")
    words = ("test", "--connections", "50", "--held", "0", "--repetitions", "1")
    done = tree.deathmatch("connections", *words)
    assert done.status == 1
    assert "of 50 connections the kernel counts server_syn_received 50" in done.text
    assert "Traceback" not in done.text
    record = json.loads((tree.path / "data/connections/test.json").read_text())
    assert "time-wait" in {one["state"] for one in record["readings"]}
