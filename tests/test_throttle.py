"""The throttled environment: quotas that the kernel really enforces, and records of what it did."""

import os
import subprocess
import sys
import time

import pytest
from conftest import AS_ROOT, HUNG_S

from deathmatch.errors import UserError
from deathmatch.hosts import cgroup, throttle
from deathmatch.plan import files
from deathmatch.plan.paths import ROOT

BUSY = "import time\nwhile time.process_time() < 0.1: pass"
SIDE = files.testbed("netns").server
# Less than its share on a machine with forty other busy processes.
SHARE = SIDE.model_copy(update={"cpu_share": 0.05, "cpu_period_us": 100_000})

V1 = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n"
V1_ELSE = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n"
OTHER = "/dev/vda / ext4 rw,cpu 0 0\n"


@pytest.mark.parametrize(
    ("mounts", "own", "expected"),
    [
        (V1 + V1_ELSE + OTHER, "3:cpu,cpuacct:/\n4:memory:/x\n",
         [(1, "/sys/fs/cgroup/cpu,cpuacct")]),
        (V2 + OTHER, "0::/user.slice/one.scope\n",
         [(2, "/sys/fs/cgroup/user.slice/one.scope"), (2, "/sys/fs/cgroup/user.slice"),
          (2, "/sys/fs/cgroup")]),
        (V2.replace("fs/cgroup", "fs/unified") + V1, "3:cpu,cpuacct:/a\n0::/\n",
         [(1, "/sys/fs/cgroup/cpu,cpuacct/a"), (1, "/sys/fs/cgroup/cpu,cpuacct"),
          (2, "/sys/fs/unified")]),
        (V1_ELSE + OTHER, "4:memory:/x\n", []),
    ],
    ids=["v1", "v2", "both", "none"],
)  # fmt: skip
def test_where_a_group_may_be(mounts, own, expected):
    assert [(v, str(p)) for v, p in cgroup.parents(mounts, own, "cpu")] == expected


OPEN = """
import sys
from deathmatch.agent.keeper import Settings
from deathmatch.hosts import opening, throttle
from deathmatch.plan import files
host = opening.through("here", [], Settings(sys.argv[1], lock=False))
"""


@pytest.fixture
def group(here):
    """A throttle of a twentieth of one CPU, ended after the test."""
    try:
        made = throttle.apply(here, SHARE, "none", 1)
    except UserError as error:
        pytest.skip(f"no cgroup with a CPU quota can be made here: {error}")
    folder = made.group.folder
    yield made
    made.end()
    assert not folder.exists()


def test_the_kernel_enforces_the_share(group):
    assert group.record == {"cpu_quota_us": 5_000, "cpu_period_us": 100_000}
    began_s = time.monotonic()
    process = subprocess.Popen([*group.prefix(), "python3", "-c", BUSY])
    _, status, usage = os.wait4(process.pid, 0)
    took_s = time.monotonic() - began_s
    process.returncode = status
    assert status == 0
    # A share of each period, and what a tick of the kernel lets through.
    assert 0.1 <= usage.ru_utime + usage.ru_stime < 0.05 * took_s + 0.05
    stalls = group.stalls()
    assert stalls["throttled_periods"] >= 3 and stalls["throttled_us"] > 0


def test_children_are_throttled_too_and_the_pid_is_the_servers(here, group):
    script = "sleep infinity & echo $!; wait"
    process = here.start([*group.prefix(), "sh", "-c", script], talk=True)
    child = process.receive(HUNG_S).strip()
    members = group.group.read("cgroup.procs").split()
    assert {str(process.pid), child} <= set(members)
    here.kill([process.pid, int(child)], HUNG_S)


def test_the_group_of_a_killed_trial_is_removed(here, group):
    left = group.group.folder.with_name("deathmatch-left")
    left.mkdir()
    hours_ago = time.time() - 7200
    os.utime(left, (hours_ago, hours_ago))
    throttle.apply(here, SHARE, "none", 1).end()
    assert not left.exists() and group.group.folder.exists()


def test_without_permission_it_says_so(tmp_path):
    """Root finds no mounted controller; another user may not make a group."""
    script = (
        "from deathmatch import errors\n"
        f"{OPEN}"
        "side = files.testbed('ec2-like').server\n"
        "errors.run_main(lambda: throttle.apply(host, side, 'none', 1))"
    )
    unmount = 'umount --all --types cgroup,cgroup2; exec "$@"'
    enter = ["unshare", "--mount", "sh", "-c", unmount, "sh"] if AS_ROOT else []
    words = [*enter, sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    tried = "no cgroup with a cpu controller" if AS_ROOT else ""
    assert f"no CPU quota can be set ({tried}" in done.stderr
    assert "run as root on a kernel with CONFIG_CFS_BANDWIDTH" in done.stderr


def test_a_group_that_the_kernel_refuses_is_removed(here, group):
    settings = {1: {"cpu.cfs_quota_us": "much"}, 2: {"cpu.max": "much"}}
    before = sorted(group.group.folder.parent.glob("deathmatch-*"))
    with pytest.raises(cgroup.Refused, match="echo"):
        cgroup.make(here, "cpu", settings)
    assert sorted(group.group.folder.parent.glob("deathmatch-*")) == before


def test_jitter_that_is_not_in_force_is_recorded(here):
    made = throttle.apply(here, SIDE.model_copy(update={"jitter": "delay 1ms"}), "no-such-link", 1)
    assert made.record["jitter"].startswith("not in force: ") and made.group is None
    assert made.prefix() == [] and made.stalls() == {}
    made.end()


@pytest.fixture
def netem(network) -> list[str]:
    """Words that run a command where the loopback can delay packets."""
    words = [*network, "tc", "qdisc"]
    done = subprocess.run([*words, *NETEM], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"this kernel cannot delay packets: {done.stderr.strip()}")
    subprocess.run([*words, "del", "dev", "lo", "root"], check=True)
    yield network
    subprocess.run([*words, "del", "dev", "lo", "root"], check=True)


NETEM = ["add", "dev", "lo", "root", "netem", "delay", "1ms"]


def test_jitter_is_in_force(netem, tmp_path):
    """In the tests' own network, the kernel has the recorded jitter."""
    script = (
        f"{OPEN}"
        "side = files.testbed('netns').server.model_copy(update={'jitter': 'delay 1ms'})\n"
        "print(throttle.apply(host, side, 'lo', 1).record['jitter'])"
    )
    words = [*netem, "sh", "-c", 'python -c "$0" "$1"; tc qdisc show dev lo']
    done = subprocess.run([*words, script, str(tmp_path)], capture_output=True, text=True, cwd=ROOT)
    said, *shown = done.stdout.splitlines()
    assert said == "delay 1ms"
    assert any("netem" in line and "delay 1ms" in line for line in shown)


def test_the_testbeds_differ_in_nothing_else():
    plain, throttled = files.testbed("netns").as_written, files.testbed("ec2-like").as_written
    own = {"cpu_share", "cpu_period_us", "jitter"}
    assert own <= throttled["server"].keys() and not own & plain["server"].keys()
    rest = {key: value for key, value in throttled["server"].items() if key not in own}
    throttled |= {"server": rest, "title": plain["title"]}
    assert {key: value for key, value in throttled.items() if key != "extends"} == plain
