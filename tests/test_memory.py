"""The limit of a server's memory: the kernel or the trial enforces it, and the record has it."""

import sys

import pytest
from conftest import HUNG_S, wait_for

from deathmatch.hosts import cgroup, memory
from deathmatch.hosts.host import Host
from deathmatch.hosts.memory import Memory
from deathmatch.hosts.process import Process
from deathmatch.plan import files

LIMIT_BYTES = 200_000_000
GROW = "held = [bytearray(10_000_000) for _ in range({})]; print('held', flush=True); input()"


def start(host: Host, limit: Memory, tens_of_mb: int) -> Process:
    words = [*limit.prefix(), sys.executable, "-c", GROW.format(tens_of_mb)]
    return host.start(words, talk=True)


def test_looking_kills_what_holds_more_and_nothing_else(here: Host):
    limit = Memory(LIMIT_BYTES, refused="no permission")
    assert limit.watched and "no permission" in limit.record()["by"]
    small, large = start(here, limit, 1), start(here, limit, 30)
    for process in (small, large):
        assert process.receive(HUNG_S) == "held\n"
    score = f"/proc/{small.pid}/oom_score_adj"
    assert here.read(score) == "1000\n", "the kernel's first choice"
    limit.watch(here, lambda: [small.pid])
    assert small.wait(0) is None and limit.breaches() == 0
    limit.watch(here, lambda: [large.pid])
    assert large.wait(HUNG_S) == -9 and limit.breaches() == 1
    assert limit.record()["breaches"] == 1
    small.send("\n")
    assert small.finish(HUNG_S) == "" and small.wait() == 0


def test_shared_pages_count_once(here: Host):
    """A family of which each has the same 100 MB is no larger than one."""
    script = (
        "import os; held = os.urandom(100_000_000); family = [os.fork() for _ in range(2)]\n"
        "os.write(1, b'held\\n'); input()"
    )
    limit = Memory(LIMIT_BYTES, refused="no permission")
    words = [*limit.prefix(), sys.executable, "-c", script]
    process = here.start(words, talk=True)
    assert [process.receive(HUNG_S) for _ in range(4)] == ["held\n"] * 4
    pids = [int(pid) for pid in here.run("pgrep", "-s", str(process.pid)).split()]
    assert sum(here.usage(pid)["rss_bytes"] for pid in pids) > LIMIT_BYTES
    limit.watch(here, lambda: pids)
    assert limit.breaches() == 0 and process.wait(0) is None
    here.kill(pids, HUNG_S)


@pytest.fixture
def group(here: Host) -> Memory:
    """A limit by a cgroup, ended after the test."""
    settings = {1: {"memory.limit_in_bytes": LIMIT_BYTES}, 2: {"memory.max": LIMIT_BYTES}}
    try:
        made = Memory(LIMIT_BYTES, cgroup.make(here, "memory", settings))
    except cgroup.Refused as error:
        pytest.skip(f"no cgroup with a limit of memory can be made here: {error}")
    folder = made.group.folder
    yield made
    made.end()
    assert not folder.exists()


def test_the_kernel_kills_what_wants_more(here: Host, group):
    assert not group.watched and group.breaches() == 0
    process = start(here, group, 50)
    assert process.wait(HUNG_S) == -9
    wait_for(group.breaches, "the kernel counts it")
    found = group.record()
    assert found["by"].startswith("a cgroup of version ") and found["breaches"] == 1
    assert found["peak_bytes"] is None or found["peak_bytes"] <= LIMIT_BYTES


def test_a_testbed_without_a_limit_has_none(here: Host):
    side = files.testbed("netns").server.model_copy(update={"memory_share": None})
    made = memory.apply(here, side)
    assert made.prefix() == [] and made.record() == {} and not made.watched
    made.end()
