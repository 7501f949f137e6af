"""Making one machine like a shared one: less CPU in slices for the server, jitter on its link.

CPU by the bandwidth controller of cgroups, jitter by tc-netem(8). Called inside a sandbox, which
ends the link with the trial; a cgroup stays until `Throttle.end`.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts import cgroup
from deathmatch.plan.testbed import Side


@dataclass
class Throttle:
    """What is in force: the cgroup's folder (None without a quota), and a record for trial.json."""

    group: Path | None
    record: dict

    def prefix(self) -> list[str]:
        """Return the words before a command that make it and its children members."""
        if not self.group:
            return []
        return ["sh", "-c", f'{cgroup.joining(self.group)} && exec "$@"', "sh"]

    def stalls(self) -> dict:
        """Return the controller's own counts so far: periods, throttled periods and time in us."""
        if not self.group:
            return {}
        found = cgroup.counts(self.group / "cpu.stat")
        stalled_us = found.get("throttled_usec", found.get("throttled_time", 0) // 1000)
        return {
            "periods": found.get("nr_periods", 0),
            "throttled_periods": found.get("nr_throttled", 0),
            "throttled_us": stalled_us,
        }

    def end(self) -> None:
        """Remove the cgroup; its members must have ended."""
        if self.group:
            cgroup.remove(self.group)
        self.group = None


def apply(side: Side, device: str, cpus: int) -> Throttle:
    """Throttle the server as its side of the testbed says; return what came of it.

    `cpu_share` is the share of each of `cpus` CPUs that it may use, `cpu_period_us` how long the
    slices are in which it is counted; `jitter` are the words after `netem`. A kernel without netem
    goes without, and the record says so. UserError where a share cannot be enforced: the trial
    would be one of another environment.
    """
    record: dict = {}
    group = None
    if side.cpu_share is not None:
        quota_us = round(side.cpu_share * cpus * side.cpu_period_us)
        group = _group(quota_us, side.cpu_period_us)
        record["cpu_quota_us"], record["cpu_period_us"] = quota_us, side.cpu_period_us
    if side.jitter is not None:
        words = ["tc", "qdisc", "add", "dev", device, "root", "netem", *side.jitter.split()]
        done = subprocess.run(words, capture_output=True, text=True)
        problem = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        record["jitter"] = side.jitter if done.returncode == 0 else f"not in force: {problem}"
    return Throttle(group, record)


def _group(quota_us: int, period_us: int) -> Path:
    settings = {
        1: {"cpu.cfs_period_us": period_us, "cpu.cfs_quota_us": quota_us},
        2: {"cpu.max": f"{quota_us} {period_us}"},
    }
    try:
        return cgroup.make("cpu", settings)
    except cgroup.Refused as error:
        raise UserError(
            f"no CPU quota can be set ({error})",
            where="testbed, key cpu_share",
            remedy="run as root on a kernel with CONFIG_CFS_BANDWIDTH, or measure without this "
            "testbed",
        ) from None
