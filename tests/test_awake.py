"""Idle CPUs that are kept awake: what is counted as idle, and that all others go first."""

import subprocess
import sys
import time

import psutil
import pytest

from deathmatch.agent import kernel
from deathmatch.hosts import awake
from deathmatch.hosts.host import Host

CPU = 0
WORK_S = 0.5
WORK = f"import time\nwhile time.process_time() < {WORK_S}: pass"
SUMS = [f"cpu_{mode}_us" for mode in kernel.MODES]


@pytest.fixture
def spinning(here: Host):
    """One CPU kept awake, ended after the test."""
    with awake.kept(here, {CPU}) as kept:
        if reason := kept.record().get("refused"):
            pytest.skip(f"no cgroup with a CPU controller: {reason}")
        yield kept


def spent_us(kept: awake.Awake) -> tuple[int, dict[str, int]]:
    """Return the time spent spinning, and the machine's counts with it as idle time."""
    plain = kernel.machine([CPU])
    counts = dict(plain)
    kept.count_as_idle(counts, [CPU])
    moved = counts["cpu_idle_us"] - plain["cpu_idle_us"]
    assert moved == counts["server_cpus_idle_us"] - plain["server_cpus_idle_us"]
    return moved, counts


def test_time_spent_spinning_is_idle_time(spinning):
    before_us, before = spent_us(spinning)
    while (spun_us := spent_us(spinning)[0] - before_us) < 200_000:
        time.sleep(0.05)
    _, after = spent_us(spinning)
    assert after["cpu_idle_us"] - before["cpu_idle_us"] >= spun_us
    # Counted once: no CPU has more than its time.
    took_us = sum(after[name] - before[name] for name in SUMS)
    plain_us = sum(kernel.machine([CPU])[name] for name in SUMS)
    assert sum(after[name] for name in SUMS) <= plain_us + 0.1 * took_us


def test_a_process_of_another_session_goes_first(spinning):
    before_us, _ = spent_us(spinning)
    worker = ["taskset", "--cpu-list", f"{CPU}", sys.executable, "-c", WORK]
    subprocess.run(worker, check=True, start_new_session=True)
    # It may spin while Python waits for its files; without its group it would have half of the CPU.
    assert spent_us(spinning)[0] - before_us < 0.3e6 * WORK_S


def test_a_cpu_that_nobody_keeps_awake(here: Host):
    counts = kernel.machine([CPU])
    for reason in ("the testbed has several machines", "no cgroup with a cpu controller"):
        host = here if "machines" in reason else _WithoutGroups()
        with awake.kept(host, {CPU}, wanted=host is not here) as kept:
            assert kept.record() == {"cpus": [], "refused": reason}
            left = dict(counts)
            kept.count_as_idle(left, [CPU])
            assert left == counts


def test_nothing_is_left(here: Host):
    before = psutil.Process().children()
    with awake.kept(here, {CPU}) as kept:
        assert len(psutil.Process().children()) == len(before) + len(kept.record()["cpus"])
    assert psutil.Process().children() == before


class _WithoutGroups:
    def read(self, path: str) -> str:
        return ""
