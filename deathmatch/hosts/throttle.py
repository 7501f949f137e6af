"""A quota of CPU time for the server, and jitter on its link, as in the testbed `ec2-like`.

The quota is that of a cgroup (CFS bandwidth control), until `Throttle.end`. The jitter is that of
tc-netem(8), as long as the link exists; a link of namespaces ends with the trial.
"""

from dataclasses import dataclass

from deathmatch.errors import UserError
from deathmatch.hosts import cgroup
from deathmatch.hosts.cgroup import Group
from deathmatch.hosts.host import Host
from deathmatch.plan.testbed import ServerSide


@dataclass
class Throttle:
    """A throttle in force: the cgroup, None without a quota, and the record for trial.json."""

    group: Group | None
    record: dict

    def prefix(self) -> list[str]:
        """Return the words before a command that put its process under the quota."""
        return self.group.prefix() if self.group else []

    def stalls(self) -> dict:
        """Return the controller's counts so far: periods, throttled periods and time in us."""
        if self.group is None:
            return {}
        counts = self.group.counts("cpu.stat")
        stalled_us = counts.get("throttled_usec", counts.get("throttled_time", 0) // 1000)
        return {
            "periods": counts.get("nr_periods", 0),
            "throttled_periods": counts.get("nr_throttled", 0),
            "throttled_us": stalled_us,
        }

    def end(self) -> None:
        """Remove the cgroup; the server's members must have ended."""
        if self.group:
            self.group.remove()
        self.group = None


def apply(host: Host, side: ServerSide, device: str, cpus: int) -> Throttle:
    """Throttle the server on its host as its side of the testbed says; return the throttle.

    `cpu_share` is the share of each of `cpus` CPUs that it may use in each `cpu_period_us`;
    `jitter` are the words after `netem`. If the kernel refuses netem, there is no jitter, and the
    record says so. Raises UserError if the share cannot be enforced, as the trial would have
    another environment.
    """
    made = Throttle(None, {})
    if side.cpu_share is not None:
        period_us, quota_us = side.cpu_period_us, round(side.cpu_share * cpus * side.cpu_period_us)
        made.group = _group(host, quota_us, period_us)
        made.record |= {"cpu_quota_us": quota_us, "cpu_period_us": period_us}
    if side.jitter is not None:
        made.record["jitter"] = _jitter(host, device, side.jitter)
    return made


def _group(host: Host, quota_us: int, period_us: int) -> Group:
    settings = {
        1: {"cpu.cfs_period_us": period_us, "cpu.cfs_quota_us": quota_us},
        2: {"cpu.max": f"{quota_us} {period_us}"},
    }
    try:
        return cgroup.make(host, "cpu", settings)
    except cgroup.Refused as error:
        raise UserError(
            f"no CPU quota can be set ({error})",
            where="testbed, key cpu_share",
            remedy="run as root on a kernel with CONFIG_CFS_BANDWIDTH, or measure without this "
            "testbed",
        ) from None


def _jitter(host: Host, device: str, words: str) -> str:
    """Return the words of netem in force on a device, or the reason why there are none."""
    try:
        host.run("tc", "qdisc", "add", "dev", device, "root", "netem", *words.split())
    except UserError as error:
        return f"not in force: {error.what.rpartition('failed: ')[2].splitlines()[0]}"
    return words
