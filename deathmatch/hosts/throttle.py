"""Making one machine like a shared one: less CPU in slices for the server, jitter on its link.

CPU by the bandwidth controller of cgroups (cgroup-v1/cpu-acct, or cpu.max of cgroup-v2), jitter by
tc-netem(8). Called inside a sandbox, which ends the link with the trial; a cgroup stays until
`Throttle.end`, or until a later trial finds it old and empty.
"""

import contextlib
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.plan.testbed import Side

MOUNTS = Path("/proc/self/mounts")
_PREFIX = "deathmatch-"
_LEFT_S = 3600


@dataclass
class Throttle:
    """What is in force: the cgroup's folder (None without a quota), and a record for trial.json."""

    group: Path | None
    record: dict

    def prefix(self) -> list[str]:
        """Return the words before a command that make it and its children members."""
        if not self.group:
            return []
        script = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
        return ["sh", "-c", script, str(self.group)]

    def stalls(self) -> dict:
        """Return the controller's own counts so far: periods, throttled periods and time in us."""
        if not self.group:
            return {}
        lines = (self.group / "cpu.stat").read_text().splitlines()
        found = {name: int(value) for name, value in (line.split() for line in lines)}
        stalled_us = found.get("throttled_usec", found.get("throttled_time", 0) // 1000)
        return {
            "periods": found.get("nr_periods", 0),
            "throttled_periods": found.get("nr_throttled", 0),
            "throttled_us": stalled_us,
        }

    def end(self) -> None:
        """Remove the cgroup; its members must have ended."""
        deadline = time.monotonic() + 2
        while self.group:
            try:
                self.group.rmdir()
                self.group = None
            except OSError:
                # A member that was killed is one until it is reaped.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


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


def parents(mounts: str, own: str) -> list[tuple[int, Path]]:
    """Return where a cgroup with a CPU quota may be made: (version, folder), best first.

    From the texts of /proc/self/mounts and /proc/self/cgroup (cgroups(7)): one's own group, then
    those above it, as a group of version 2 that has members takes no child with a controller.
    """
    found = []
    for line in mounts.splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(","):
            version, controller = 1, "cpu"
        elif kind == "cgroup2":
            version, controller = 2, ""
        else:
            continue
        for entry in own.splitlines():
            _, controllers, path = entry.split(":", 2)
            if controller in controllers.split(","):
                here = Path(mount, path.lstrip("/"))
                above = [folder for folder in here.parents if folder.is_relative_to(mount)]
                found += [(version, folder) for folder in (here, *above)]
    return sorted(found, key=lambda one: one[0])


def _group(quota_us: int, period_us: int) -> Path:
    tried = []
    for version, parent in parents(MOUNTS.read_text(), Path("/proc/self/cgroup").read_text()):
        group = parent / f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
        try:
            for old in parent.glob(f"{_PREFIX}*"):
                # One that is in use has members, but for a moment as its server starts.
                with contextlib.suppress(OSError):
                    if time.time() - old.stat().st_mtime > _LEFT_S:
                        old.rmdir()
            if version == 2:
                (parent / "cgroup.subtree_control").write_text("+cpu")
            group.mkdir()
            if version == 2:
                (group / "cpu.max").write_text(f"{quota_us} {period_us}")
            else:
                (group / "cpu.cfs_period_us").write_text(str(period_us))
                (group / "cpu.cfs_quota_us").write_text(str(quota_us))
            return group
        except OSError as error:
            tried.append(f"{error.strerror}: {error.filename}")
            with contextlib.suppress(OSError):
                group.rmdir()
    raise UserError(
        f"no CPU quota can be set ({'; '.join(tried) or 'no cgroup with a CPU controller'})",
        where="testbed, key cpu_share",
        remedy="run as root on a kernel with CONFIG_CFS_BANDWIDTH, or measure without this testbed",
    )
