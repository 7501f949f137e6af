"""Making one machine like a shared one: less CPU in slices for the server, jitter on its link.

CPU by the bandwidth controller of cgroups, jitter by tc-netem(8). A cgroup stays until
`Throttle.end`, the jitter as long as its link, which of namespaces ends with the trial.
"""

from dataclasses import dataclass

from deathmatch.errors import UserError
from deathmatch.hosts import cgroup
from deathmatch.hosts.cgroup import Group
from deathmatch.hosts.host import Host
from deathmatch.plan.testbed import Side


@dataclass
class Throttle:
    """What is in force: the cgroup (None without a quota), and a record for trial.json."""

    group: Group | None
    record: dict

    def prefix(self) -> list[str]:
        """Return the words before a command that make it and its children members."""
        if not self.group:
            return []
        return ["sh", "-c", f'{self.group.joining()} && exec "$@"', "sh"]

    def stalls(self) -> dict:
        """Return the controller's own counts so far: periods, throttled periods and time in us."""
        if not self.group:
            return {}
        counts = self.group.counts("cpu.stat")
        stalled_us = counts.get("throttled_usec", counts.get("throttled_time", 0) // 1000)
        return {
            "periods": counts.get("nr_periods", 0),
            "throttled_periods": counts.get("nr_throttled", 0),
            "throttled_us": stalled_us,
        }

    def end(self) -> None:
        """Remove the cgroup; its members must have ended."""
        if self.group:
            self.group.remove()
        self.group = None


def apply(host: Host, side: Side, device: str, cpus: int) -> Throttle:
    """Throttle the server on its host as its side of the testbed says; return what is in force.

    `cpu_share` is the share of each of `cpus` CPUs that it may use, `cpu_period_us` how long the
    slices are in which it is counted; `jitter` are the words after `netem`. A kernel without netem
    goes without, and the record says so. UserError where a share cannot be enforced: the trial
    would be one of another environment.
    """
    record: dict = {}
    group = None
    if side.cpu_share is not None:
        quota_us = round(side.cpu_share * cpus * side.cpu_period_us)
        group = _group(host, quota_us, side.cpu_period_us)
        record["cpu_quota_us"], record["cpu_period_us"] = quota_us, side.cpu_period_us
    if side.jitter is not None:
        words = ["tc", "qdisc", "add", "dev", device, "root", "netem", *side.jitter.split()]
        try:
            host.run(*words)
            record["jitter"] = side.jitter
        except UserError as error:
            problem = error.what.rpartition("failed: ")[2].splitlines()[0]
            record["jitter"] = f"not in force: {problem}"
    return Throttle(group, record)


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
