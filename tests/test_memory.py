"""A server's memory: a limit that holds, by the kernel or by looking, and that is told."""

import subprocess
import sys

import pytest
from conftest import HUNG_S, wait_for

from deathmatch.errors import UserError
from deathmatch.hosts import cgroup, memory, throttle
from deathmatch.hosts.host import Local
from deathmatch.hosts.memory import Memory
from deathmatch.plan import files

LIMIT_BYTES = 200_000_000
GROW = "held = [bytearray(10_000_000) for _ in range({})]; print('held', flush=True); input()"


def start(limit: Memory, tens_of_mb: int) -> subprocess.Popen:
    words = [*limit.prefix(), sys.executable, "-c", GROW.format(tens_of_mb)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_looking_kills_what_holds_more_and_nothing_else():
    limit = Memory(LIMIT_BYTES, refused="no permission")
    assert limit.watched and "no permission" in limit.record()["by"]
    small, large = start(limit, 1), start(limit, 30)
    for process in (small, large):
        assert process.stdout.readline() == "held\n"
    score = f"/proc/{small.pid}/oom_score_adj"
    assert Local().read(score) == "1000\n", "the kernel's first choice"
    limit.watch(Local(), lambda: [small.pid])
    assert small.poll() is None and limit.breaches() == 0
    limit.watch(Local(), lambda: [large.pid])
    assert large.wait(HUNG_S) == -9 and limit.breaches() == 1
    assert limit.record()["breaches"] == 1
    small.communicate("\n")


def test_shared_pages_count_once():
    """A family of which each has the same 100 MB is no larger than one."""
    script = (
        "import os; held = os.urandom(100_000_000); family = [os.fork() for _ in range(2)]\n"
        "os.write(1, b'held\\n'); input()"
    )
    limit = Memory(LIMIT_BYTES, refused="no permission")
    words = [*limit.prefix(), sys.executable, "-c", script]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert [process.stdout.readline() for _ in range(4)] == ["held\n"] * 4
        family = subprocess.run(
            ["pgrep", "-s", str(process.pid)], capture_output=True, text=True, check=True
        ).stdout.split()
        pids = list(map(int, family))
        assert sum(Local().usage(pid)["rss_bytes"] for pid in pids) > LIMIT_BYTES
        limit.watch(Local(), lambda: pids)
        assert limit.breaches() == 0 and process.poll() is None
        process.communicate("\n\n\n\n")


@pytest.fixture
def group() -> Memory:
    """A limit by a cgroup, ended after the test."""
    settings = {1: {"memory.limit_in_bytes": LIMIT_BYTES}, 2: {"memory.max": LIMIT_BYTES}}
    try:
        made = Memory(LIMIT_BYTES, cgroup.make(Local(), "memory", settings))
    except cgroup.Refused as error:
        pytest.skip(f"no cgroup with a limit of memory can be made here: {error}")
    folder = made.group.folder
    yield made
    made.end()
    assert not folder.exists()


def test_the_kernel_kills_what_wants_more(group):
    assert not group.watched and group.breaches() == 0
    process = start(group, 50)
    assert process.wait(HUNG_S) == -9
    wait_for(group.breaches, "the kernel counts it")
    found = group.record()
    assert found["by"].startswith("a cgroup of version ") and found["breaches"] == 1
    assert found["peak_bytes"] is None or found["peak_bytes"] <= LIMIT_BYTES


def test_a_limit_beside_a_quota():
    """In version 2 they share a group, which is the quota's to remove."""
    side = files.testbed("netns").server.model_copy(
        update={"cpu_share": 0.5, "cpu_period_us": 100_000}
    )
    try:
        throttled = throttle.apply(Local(), side, "none", 1)
    except UserError as error:
        pytest.skip(f"no cgroup with a CPU quota can be made here: {error}")
    folder = throttled.group.folder
    made = memory.apply(Local(), side, throttled.group)
    version = throttled.group.version
    assert made.limit_bytes == int(0.75 * memory.total_bytes(Local()))
    assert made.shared == (version == 2) == (made.group is throttled.group)
    words = [*throttled.prefix(), *made.prefix(), "cat", "/proc/self/cgroup"]
    joined = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    for one in (throttled.group, made.group):
        assert one is None or f"/{one.folder.name}\n" in joined
    made.end()
    assert folder.exists()
    throttled.end()
    assert not folder.exists()


def test_a_testbed_without_a_limit_has_none():
    side = files.testbed("netns").server.model_copy(update={"memory_share": None})
    made = memory.apply(Local(), side)
    assert made.prefix() == [] and made.record() == {} and not made.watched
    made.end()
