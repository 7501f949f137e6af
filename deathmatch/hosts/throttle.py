"""Who gets how much of a machine's CPUs, and jitter on a link.

CPU by cgroups: a quota for the server in slices, weights where server and clients share CPUs, a cap
for each of the server's threads where CPUs are emulated. Jitter by tc-netem(8). The cgroups stay
until `Throttle.end`, the jitter as long as its link, which of namespaces ends with the trial.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from deathmatch.errors import UserError
from deathmatch.hosts import cgroup
from deathmatch.hosts.cgroup import Group, Settings
from deathmatch.hosts.host import Host
from deathmatch.plan.testbed import ClientSide, ServerSide

# CLOCK_MONOTONIC_COARSE of clock_gettime(2), whose resolution is the kernel's tick.
_COARSE = 6
# A shorter period loses some of its quota: at 250 Hz 13 to 22 % in 5 ms, 1 % at most in 20 ms.
TICKS_A_PERIOD = 5
# cpu.shares of cgroup v1 and cpu.weight of v2 of a group that nobody has changed.
_SHARES, _WEIGHT = 1024, 100
# cpu.rt_period_us of a group of cgroup v1 that nobody has changed.
REAL_TIME_PERIOD_US = 1_000_000


@dataclass
class Throttle:
    """What is in force: the cgroups (none without a quota or weight), a record for trial.json.

    `thread_cap` are the settings of a group for each thread of the server, where CPUs are emulated;
    `real_time` are the agents of clients that have a real-time priority, as (host, pid).
    """

    group: Group | None
    record: dict
    clients: Group | None = None
    thread_cap: Settings | None = None
    real_time: list[tuple[Host, str]] = field(default_factory=list)
    _capped: set[int] = field(default_factory=set)

    def prefix(self) -> list[str]:
        """Return the words before a command that make it and its children members."""
        if not self.group:
            return []
        return ["sh", "-c", f'{self.group.joining()} && exec "$@"', "sh"]

    def stalls(self) -> dict:
        """Return the controller's own counts so far: periods, throttled periods and time in us."""
        if "cpu_quota_us" not in self.record:
            return {}
        counts = self.group.counts("cpu.stat")
        stalled_us = counts.get("throttled_usec", counts.get("throttled_time", 0) // 1000)
        return {
            "periods": counts.get("nr_periods", 0),
            "throttled_periods": counts.get("nr_throttled", 0),
            "throttled_us": stalled_us,
        }

    def cap_threads(self, threads: Sequence[int]) -> None:
        """Cap each of these threads that is not yet, where CPUs are emulated; not those that ended.

        What a thread starts from now on shares its cap, until it is given here itself. UserError if
        the kernel refuses.
        """
        new = [thread for thread in threads if thread not in self._capped]
        if self.thread_cap is None or not new:
            return
        self.group.thread_groups(new, self.thread_cap)
        self._capped |= set(new)
        self.record["capped_threads"] = len(self._capped)

    def end(self) -> None:
        """Remove the cgroups; the server's members must have ended."""
        if self.group:
            self.group.remove()
        for client, agent in self.real_time:
            client.run("chrt", "--all-tasks", "--other", "--pid", "0", agent)
        if self.clients:
            self.clients.release()
        self.group = self.clients = None
        self.real_time = []


def apply(
    host: Host, side: ServerSide, device: str, cpus: int, n: int = 1,
    clients: Mapping[Host, ClientSide] | None = None,
) -> Throttle:  # fmt: skip
    """Throttle the server on its host as its side of the testbed says; return what is in force.

    `cpu_share` is the share of each of `cpus` CPUs that it may use, `cpu_period_us` how long the
    slices are in which it is counted; where CPUs are emulated, `cpus` is how many, and of each
    second trial `n` the slices are twice as long. The hosts `clients` share its CPUs by weights; a
    delay of their reads is recorded here, and made where load generators start.
    `jitter` are the words after `netem`. A kernel that refuses netem, or a real-time priority of
    the load generators, goes without, and the record says so. UserError where a share or a weight
    cannot be enforced: the trial would be one of another environment.
    """
    made = Throttle(None, {})
    settings: dict[int, dict] = {1: {}, 2: {}}
    if side.cpu_share is not None:
        period_us = side.cpu_period_us if side.emulated_cpus is None else _period_us(side, n)
        quota_us = round(side.cpu_share * cpus * period_us)
        settings = _merged(settings, _quota(quota_us, period_us))
        made.record |= {"cpu_quota_us": quota_us, "cpu_period_us": period_us}
        if side.emulated_cpus is not None:
            made.thread_cap = _quota(round(side.cpu_share * period_us), period_us)
            made.record |= {"emulated_cpus": cpus}
    if side.cpu_weight is not None:
        settings = _merged(settings, _weight(side.cpu_weight))
        made.record |= {"server_weight": side.cpu_weight}
    if settings[1]:
        made.group = _group(host, settings, "cpu_share" if side.cpu_share else "cpu_weight")
    for client, own in (clients or {}).items():
        if own.read_delay_us is not None:
            made.record |= {"read_delay_us": own.read_delay_us}
        if own.cpu_weight is not None and made.clients is None:
            made.clients = _group(host, _weight(own.cpu_weight), "cpu_weight")
            made.record |= {"client_weight": own.cpu_weight}
        if own.cpu_weight is not None:
            # The agent starts the load generators, which are members as it is. Its own namespace
            # does not have the groups' folders.
            agent = client.run("sh", "-c", "echo $PPID").strip()
            made.clients.add(agent)
            if own.real_time_share is not None:
                _real_time(client, agent, own.real_time_share, made)
    if side.jitter is not None:
        words = ["tc", "qdisc", "add", "dev", device, "root", "netem", *side.jitter.split()]
        made.record["jitter"] = _refused(lambda: host.run(*words)) or side.jitter
    return made


def _refused(set_it: Callable[[], object]) -> str | None:
    """Return None if a setting takes effect, else what the record says instead."""
    try:
        set_it()
    except UserError as error:
        problem = error.what.rpartition("failed: ")[2].splitlines()[0]
        return f"not in force: {problem}"
    return None


def _real_time(client: Host, agent: str, share: float, made: Throttle) -> None:
    """Give the agent's threads, and so what they start, a real-time priority (sched(7))."""

    def prioritise() -> None:
        # A group of version 1 takes no such thread before it has a share of real time.
        made.clients.write_known("cpu.rt_runtime_us", round(share * REAL_TIME_PERIOD_US))
        client.run("chrt", "--all-tasks", "--fifo", "--pid", "1", agent)

    why = _refused(prioritise)
    made.record["client_real_time_share"] = why or share
    if why is None:
        made.real_time.append((client, agent))


def _period_us(side: ServerSide, n: int) -> int:
    """Return the length of a period where CPUs are emulated, in trial `n`."""
    tick_us = round(time.clock_getres(_COARSE) * 1e6)
    return max(side.cpu_period_us, TICKS_A_PERIOD * tick_us) * (1 if n % 2 else 2)


def _quota(quota_us: int, period_us: int) -> Settings:
    return {
        1: {"cpu.cfs_period_us": period_us, "cpu.cfs_quota_us": quota_us},
        2: {"cpu.max": f"{quota_us} {period_us}"},
    }


def _weight(weight: int) -> Settings:
    return {1: {"cpu.shares": weight * _SHARES // _WEIGHT}, 2: {"cpu.weight": weight}}


def _merged(one: Settings, other: Settings) -> dict[int, dict]:
    return {version: {**one[version], **other[version]} for version in one}


def _group(host: Host, settings: Settings, key: str) -> Group:
    try:
        return cgroup.make(host, "cpu", settings)
    except cgroup.Refused as error:
        what = "CPU quota" if key == "cpu_share" else "CPU weight"
        raise UserError(
            f"no {what} can be set ({error})",
            where=f"testbed, key {key}",
            remedy="run as root on a kernel with CONFIG_CFS_BANDWIDTH, or measure without this "
            "testbed",
        ) from None
