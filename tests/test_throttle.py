"""The throttled environment: quotas that the kernel really enforces, and records of what it did."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import AS_ROOT, HUNG_S, Tree, wait_for

from deathmatch.data import tidy
from deathmatch.errors import UserError
from deathmatch.hosts import cgroup, throttle
from deathmatch.plan import files
from deathmatch.plan.root import ROOT
from deathmatch.quantities.quantity import REPLY

BUSY = "import time; end = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass"
SIDE = files.testbed("netns").server
SHARE = SIDE.model_copy(update={"cpu_share": 0.2, "cpu_period_us": 100_000})

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
    """A throttle of a fifth of one CPU, ended after the test."""
    try:
        made = throttle.apply(here, SHARE, "none", 1)
    except UserError as error:
        pytest.skip(f"no cgroup with a CPU quota can be made here: {error}")
    folder = made.group.folder
    yield made
    made.end()
    assert not folder.exists()


@pytest.mark.alone
def test_the_kernel_enforces_the_share(group):
    assert group.record == {"cpu_quota_us": 20_000, "cpu_period_us": 100_000}
    process = subprocess.Popen([*group.prefix(), "python3", "-c", BUSY])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    assert status == 0
    # 1.5 s at a fifth, and at most a period's share more.
    assert usage.ru_utime + usage.ru_stime < 0.2 * 1.5 + 0.15
    stalls = group.stalls()
    assert stalls["throttled_periods"] >= 3 and stalls["throttled_us"] > 0


def test_children_are_throttled_too_and_the_pid_is_the_servers(here, group):
    script = "sleep infinity & echo $!; wait"
    process = here.start([*group.prefix(), "sh", "-c", script], talk=True)
    child = process.receive(HUNG_S).strip()
    members = group.group.read("cgroup.procs").split()
    assert {str(process.pid), child} <= set(members)
    here.kill([process.pid, int(child)], HUNG_S)


def test_what_a_killed_trial_left_is_removed(here, group):
    left = group.group.folder.with_name("deathmatch-left")
    left.mkdir()
    hours_ago = time.time() - 7200
    os.utime(left, (hours_ago, hours_ago))
    throttle.apply(here, SHARE, "none", 1).end()
    assert not left.exists() and group.group.folder.exists()


def test_without_permission_it_says_so(tmp_path):
    """Root sees no controller once none is mounted; who is not root may not make a group."""
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


# Who shares CPUs, and emulated ones


BOTH, EMULATED = files.testbed("both"), files.testbed("four-emulated").server


def applied(*given, **named) -> throttle.Throttle:
    """Return what is in force; skip the test where no group can be made."""
    try:
        return throttle.apply(*given, **named)
    except UserError as error:
        pytest.skip(f"no cgroup for CPU time can be made here: {error}")


def test_server_and_client_are_in_groups_of_their_weights(here):
    home = here.read("/proc/self/cgroup")
    made = applied(here, BOTH.server, "none", 2, clients={here: BOTH.client_sides[0]})
    priority = made.record.pop("client_real_time_share")
    assert made.record == {"server_weight": 200, "client_weight": 800}
    # A kernel that refuses says so.
    policy = here.run("sh", "-c", "chrt --pid $PPID")
    assert ("SCHED_FIFO" in policy) == (priority == 0.9)
    assert priority == 0.9 or priority.startswith("not in force: ")
    file, unit = {1: ("cpu.shares", 1024), 2: ("cpu.weight", 100)}[made.group.version]
    weights = [int(group.read(file)) for group in (made.group, made.clients)]
    assert weights == [2 * unit, 8 * unit]
    # The load generators are its children.
    assert here.run("cat", "/proc/self/cgroup") != home
    folders = made.group.folder, made.clients.folder
    assert made.stalls() == {}
    made.end()
    assert here.read("/proc/self/cgroup") == home and not any(map(Path.exists, folders))
    assert "SCHED_OTHER" in here.run("sh", "-c", "chrt --pid $PPID")


@pytest.mark.parametrize(("n", "period_us"), [(1, 20_000), (2, 40_000), (3, 20_000)])
def test_each_second_trial_has_longer_periods(here, n, period_us):
    made = applied(here, EMULATED, "none", 4, n)
    ticks_us = throttle.TICKS_A_PERIOD * round(time.clock_getres(throttle._COARSE) * 1e6)
    period_us = max(period_us, ticks_us * (1 if n % 2 else 2))
    record = {
        "cpu_quota_us": round(1.4 * period_us), "cpu_period_us": period_us, "emulated_cpus": 4,
        "server_weight": 100,
    }  # fmt: skip
    assert made.record == record
    made.end()


def wait_for_member(group: cgroup.Group, pid: int) -> None:
    """Return once a process that joins the group by itself, as the first thing it does, has."""
    wait_for(lambda: str(pid) in group.read("cgroup.procs").split(), "it is in the group")


def test_each_thread_is_capped_and_the_group_has_them_all(here):
    made = applied(here, EMULATED.model_copy(update={"cpu_share": 0.05}), "none", 4)
    process = here.start([*made.prefix(), "sleep", "infinity"], talk=True)
    folder = made.group.folder
    wait_for_member(made.group, process.pid)
    (thread,) = here.threads(process.pid)
    made.cap_threads([thread, 4_000_000])
    members = {1: "tasks", 2: "cgroup.threads"}[made.group.version]
    inner = folder / f"thread-{thread}"
    assert here.read(inner / members).split() == [str(thread)]
    settings = made.thread_cap[made.group.version]
    assert {name: inner.joinpath(name).read_text().strip() for name in settings} == {
        name: str(value) for name, value in settings.items()
    }
    assert made.record["capped_threads"] == 2
    here.kill([process.pid], HUNG_S)
    made.end()
    assert not folder.exists()


def test_threads_of_version_2_are_moved_one_by_one(here):
    """Where the cpu controller is of version 1, a group of version 2 still takes threads."""
    try:
        group = cgroup.make(here, "", {1: {}, 2: {}})
    except cgroup.Refused as error:
        pytest.skip(f"no cgroup of version 2 can be made here: {error}")
    words = ["sh", "-c", f'{group.joining()} && exec "$@"', "sh", "sleep", "infinity"]
    process = here.start(words, talk=True)
    wait_for_member(group, process.pid)
    group.thread_groups([process.pid], {2: {}}, controller="")
    inner = group.folder / f"thread-{process.pid}"
    assert inner.joinpath("cgroup.type").read_text() == "threaded\n"
    assert here.read(inner / "cgroup.threads").split() == [str(process.pid)]
    here.kill([process.pid], HUNG_S)
    group.remove()
    assert not group.folder.exists()


def test_a_trial_on_each_records_what_each_side_got(tree: Tree):
    # The client's CPU time is counted in ticks of 10 ms: in 1.5 s it may use less than one.
    tree.dataset(
        "shared", ["null"], [200], 5.0,
        levels='schedulers = ["all"]\nload_generator = ["roundtrip"]\n'
        'own_testbed = ["both", "four-emulated"]',
    )  # fmt: skip
    tree.deathmatch("build", "null").succeeded()
    variant = "backlog=128,schedulers=all,somaxconn=4096,load_generator=roundtrip,own_testbed="
    found = {}
    for testbed in ("both", "four-emulated"):
        folder = Path("data", "shared", "backlog", "null", variant + testbed, "1")
        done = tree.deathmatch("trial", folder)
        if "no CPU " in done.text:
            pytest.skip("no cgroup for CPU time can be made here")
        done.succeeded()
        record = json.loads((tree.path / folder / "trial.json").read_text())
        assert record["testbed"] == testbed and record["outcome"] == "measured"
        (found[testbed],) = record["points"]
        got = found[testbed]["cpu"]
        assert 0 < got["server_us"] < got["total_us"] and 0 < got["client_us"] < got["total_us"]
        throttled = record["throttle"]
        shared = {"server_weight", "client_weight", "client_real_time_share"}
        if testbed == "both":
            assert throttled.keys() == shared
            assert "emulation" not in record
        else:
            assert throttled.keys() > shared
            assert throttled["emulated_cpus"] == record["emulation"]["workers"] == 4
            # 200 requests a second hold no server back.
            assert {"shared", "cap"} & {*record["emulation"]["broken"]}
            assert throttled["guards"] == ", ".join(record["emulation"]["broken"])
            assert throttled["capped_threads"] >= 4
    assert found["four-emulated"]["workers"] == 4


def test_a_slow_client_is_the_limit_at_a_rate_that_the_server_can_answer(tree: Tree):
    tree.dataset("slow", ["null"], [2000], 1.0, levels='own_testbed = ["slow-client"]')
    tree.deathmatch("build", "null").succeeded()
    variant = "backlog=128,schedulers=one,somaxconn=4096,own_testbed=slow-client"
    folder = Path("data", "slow", "backlog", "null", variant, "1")
    tree.deathmatch("trial", folder).succeeded()
    record = json.loads((tree.path / folder / "trial.json").read_text())
    delay_us = files.testbed("slow-client").client.read_delay_us
    assert record["throttle"] == {"read_delay_us": delay_us}
    (point,) = tidy.tidy(tree.path / folder / "trial.json")["points"]
    # It reads each reply, one after the other.
    assert 0 < point[REPLY] < 1e6 / delay_us < 2000 and point["client_limited"]


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
    """In a network of the tests' own: what the record says is what the kernel has."""
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
