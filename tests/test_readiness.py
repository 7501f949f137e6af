"""Readiness: each mechanism by a real server, idle connections really held, select past its end."""

import json
import subprocess

import polars as pl
import pytest
from conftest import Tree, copy_tree

from deathmatch.data import tidy
from deathmatch.measure import server_process

WAITS = {
    "select": {"select", "pselect6"},
    "poll": {"poll", "ppoll"},
    "epoll": {"epoll_wait", "epoll_pwait"},
    "io_uring": {"io_uring_enter"},
}
IDLE = 100
BLOCK = "[[experiments.readiness.grids]]\n"


@pytest.fixture(scope="module")
def measured(tmp_path_factory, network) -> tuple[Tree, dict[tuple, dict]]:
    """A dataset of the C server by every mechanism, and two on select with more than it can hold.

    The trials by server, mechanism and idle connections.
    """
    tree = Tree(copy_tree(tmp_path_factory.mktemp("readiness") / "tree"), network)
    tree.write(
        "config/datasets/waits.toml",
        'title = "t"\ntrials = 1\nseed = 1\n[experiments.readiness]\nrates_rps = [0, 200]\n'
        f"duration_s = 0.5\n{BLOCK}"
        f'servers = ["c-readiness"]\nreadiness = "all"\nidle_connections = [{IDLE}]\n{BLOCK}'
        'servers = ["c-readiness", "tornado"]\nreadiness = ["select"]\n'
        "idle_connections = [4000]\n",
    )
    # Not in the tests' own network: a build may download.
    Tree(tree.path).deathmatch("build", "tornado").succeeded()
    # At a tenth of the rate, a traced server answers every request even on a busy machine.
    tree.replace(
        "experiments/readiness.toml", "system_calls_rate_rps = 500", "system_calls_rate_rps = 50"
    )
    tree.snakemake("data/waits/readiness/points.parquet", dataset="waits").succeeded()
    found = {}
    for path in (tree.path / "data/waits/readiness").glob("*/*/1/trial.json"):
        trial = json.loads(path.read_text())
        factors = trial["spec"]["factors"]
        server = path.relative_to(tree.path).parts[3]
        found[server, factors["readiness"], factors["idle_connections"]] = trial
    return tree, found


@pytest.mark.parametrize("mechanism", WAITS)
def test_each_mechanism_is_seen_and_waits_once_for_several_requests_at_most(measured, mechanism):
    trial = measured[1]["c-readiness", mechanism, IDLE]
    assert (trial["outcome"], trial["reason"]) == ("measured", "")
    names = [check["name"] for check in trial["conformance"]]
    assert {
        f"waits with {mechanism}", "at rest after the checks", f"holds {IDLE} idle connections"
    } <= {*names}  # fmt: skip
    counted = trial["system_calls"]
    replies, times = counted["replies"], counted["calls"]
    # The longer window has one second more, at 50 requests a second.
    assert replies == 50
    assert set(times) & tidy.WAITS <= WAITS[mechanism]
    # On a busy machine one wait finds several.
    assert 0 < sum(times.get(name, 0) for name in WAITS[mechanism]) < replies * 1.1
    assert times["sendto"] == pytest.approx(replies, abs=5)


RESTARTS = """
from pathlib import Path
from deathmatch.builds import clone
from deathmatch.hosts import netns_testbed
from deathmatch.measure import server_process
from deathmatch.plan import files
hosts = netns_testbed.build(files.testbed("netns"), {}, clone.on)
values = {"backlog": 128, "workers": 1, "readiness": "io_uring"}
late, tested = [], files.server("c-readiness")
for _ in range(30):
    running, problem = server_process.start(
        hosts.server, hosts.installations["server"], tested, values, hosts.address, 8080, cpus=[0],
        log=Path("server.log"))
    server_process.stop(running)
    late.append(problem or server_process.listens(hosts.server, hosts.address, 8080))
assert not any(late), late
"""


def test_nothing_listens_once_a_server_is_stopped(measured):
    """With io_uring the socket outlives its process: some of these would be found listening."""
    tree, _ = measured
    tree.sandboxed("python", "-c", RESTARTS).succeeded()


@pytest.mark.parametrize("mechanism", WAITS)
def test_idle_connections_are_held_at_every_rate(measured, mechanism):
    tree, _ = measured
    key = pl.col("readiness") == mechanism, pl.col("idle_connections") == IDLE
    points = pl.read_parquet(tree.path / "data/waits/readiness/points.parquet").filter(*key)
    assert points["idle_held"].to_list() == [IDLE, IDLE]
    assert points["server_descriptors_max"].min() > IDLE
    assert points["idle_losses"].to_list() == [0, 0]
    samples = pl.read_parquet(tree.path / "data/waits/readiness/samples.parquet").filter(*key)
    offered = samples.drop_nulls("offered_rate_rps")
    assert offered["server_established"].min() >= IDLE


def test_counts_reach_the_tables(measured):
    trials = pl.read_parquet(measured[0].path / "data/waits/readiness/trials.parquet")
    held = trials.filter(pl.col("idle_connections") == IDLE)
    # A wait, a read and a write.
    assert held["syscalls_per_reply"].is_between(1.9, 3.3).all()
    assert held["waits_per_reply"].is_between(0, 1.1).all()
    assert trials.filter(pl.col("idle_connections") == 4000)["syscalls_per_reply"].is_null().all()


def test_a_select_that_cannot_hold_them_is_reported(measured):
    trial = measured[1]["c-readiness", "select", 4000]
    assert trial["outcome"] == "answers wrongly" and trial["points"] == []
    assert "holds 4000 idle connections: roundtrip: the server closed" in trial["reason"]


def test_tornado_on_select_dies_past_its_range_and_its_log_says_why(measured):
    trial = measured[1]["tornado", "select", 4000]
    assert trial["outcome"] == "answers wrongly"
    assert "it ended (exit status 1)" in trial["reason"]
    assert "ValueError: filedescriptor out of range in select()" in trial["reason"]


def test_summary_of_strace(tmp_path):
    words = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=123", "status=none"]
    log = tmp_path / "strace.txt"
    subprocess.run(["strace", "-f", "-c", "-U", "name,calls", "-o", log, *words], check=True)
    found = server_process.parse_strace(log.read_text())
    assert 123 <= found["write"] <= 124 and "total" not in found and "calls" not in found


def test_counts_per_reply():
    found = {"replies": 200, "calls": {"epoll_wait": 100, "recvfrom": 200, "sendto": 200}}
    assert tidy._system_calls(found) == {"syscalls_per_reply": 2.5, "waits_per_reply": 0.5}
    for nothing in (None, {"reason": "not allowed"}, {"replies": 0, "calls": {}}):
        assert set(tidy._system_calls(nothing).values()) == {None}
