"""Rules about what else the machine did: nothing took the CPU that server and client were to have.

Bounds that the audit has too are those of hosts.audit.
"""

from collections.abc import Iterator

from deathmatch.checks.rule import Finding, Rules, Unknown, whole
from deathmatch.data.strict.evidence import Evidence
from deathmatch.data.strict.measured import Measured
from deathmatch.data.strict.origin_rules import differing
from deathmatch.data.strict.rule import AGAIN, THREATS, loaded
from deathmatch.errors import UserError
from deathmatch.hosts import network_settings
from deathmatch.hosts.audit import REFUSED_BUSY
from deathmatch.plan import files

# A server that loses a fifth of the time is at its limit when it seems to use 83 % of a CPU.
REJECTED_STEAL = 0.2
WARNED_STEAL = 0.05
# The kernel counts most of this by tick, so that a third of the CPUs may be an error of counting.
WARNED_BUSY = 1 / 3
WASTEFUL = {"powersave"}
KEYS = ("governors", "turbo", "smt_active")

ENVIRONMENT = Rules(AGAIN, loaded)


def _stolen(trial: Measured, above: float, up_to: float) -> Iterator[str]:
    for at in trial.shares:
        if above < at.stolen <= up_to:
            yield f"{at.stolen:.0%} of the CPU time was stolen at {at.rate_rps} req/s"


def _others(trial: Measured, above: float, up_to: float) -> Iterator[str]:
    for at in trial.shares:
        if above < at.others <= up_to:
            yield f"{at.others:.0%} of the CPUs did other work at {at.rate_rps} req/s"


@ENVIRONMENT.add(
    "DM-STEAL", "reject", THREATS,
    "measure these trials again, in a quieter hour or on a dedicated host",
)  # fmt: skip
def little_was_stolen(trial: Measured) -> Iterator[str]:
    """The hypervisor took less than a fifth of the CPU time at every rate."""
    return _stolen(trial, REJECTED_STEAL, 1)


@ENVIRONMENT.add(
    "DM-SOME-STEAL", "warn", THREATS, "look at these points: servers stood still in that time"
)
def hardly_any_was_stolen(trial: Measured) -> Iterator[str]:
    """The hypervisor took less than a twentieth of the CPU time at every rate."""
    return _stolen(trial, WARNED_STEAL, REJECTED_STEAL)


@ENVIRONMENT.add(
    "DM-NEIGHBOUR", "reject", THREATS, "end what else runs, and measure these trials again"
)
def no_other_load(trial: Measured) -> Iterator[str]:
    """Nothing but server, load generator and kernel used half of the CPUs at any rate."""
    return _others(trial, REFUSED_BUSY, 10)


@ENVIRONMENT.add(
    "DM-SOME-NEIGHBOUR", "warn", THREATS, "look at these points: something else may have run"
)
def little_other_load(trial: Measured) -> Iterator[str]:
    """Nothing but server, load generator and kernel used a third of the CPUs at any rate."""
    return _others(trial, WARNED_BUSY, REFUSED_BUSY)


@ENVIRONMENT.add("DM-THROTTLED", "reject", THREATS)
def throttled_as_the_testbed_says(trial: Measured) -> Iterator[str | Unknown]:
    """The server's CPU was throttled where its testbed says so, by that quota, and nowhere else."""
    record = trial.record
    try:
        side = files.testbed(record["testbed"]).server
    except UserError as error:
        if record.get("throttle"):
            yield Unknown(f"its testbed cannot be read: {error.what}")
        return
    throttle = record.get("throttle") or {}
    quota_us = throttle.get("cpu_quota_us")
    cpus = len((record.get("cpus") or {}).get("server", []))
    due_us = None
    if side.cpu_share is not None:
        due_us = round(side.cpu_share * cpus * side.cpu_period_us)
    if quota_us != due_us:
        yield f"a quota of {quota_us} us, where the testbed has {due_us}"


def _processors(trial: Measured) -> dict[str, tuple]:
    hosts = trial.record.get("hosts") or {}
    return {
        name: tuple(str(host.get("processor", {}).get(key)) for key in KEYS)
        for name, host in sorted(hosts.items())
    }


@ENVIRONMENT.add(
    "DM-FREQUENCY", "reject", THREATS,
    "set the governor to performance, and measure these trials again", scope=whole,
)  # fmt: skip
def frequency_is_the_same(evidence: Evidence) -> Iterator[Finding]:
    """The CPUs' governor, turbo and SMT were the same in all trials of a testbed, and none saves
    power.

    A machine without such settings has nothing to differ.
    """
    trials = [trial for trial in evidence.loaded if trial.record.get("hosts")]
    text = f"{', '.join(KEYS)} were {{}}, elsewhere {{}}"
    yield from differing(trials, lambda trial: trial.record["testbed"], _processors, text)
    for trial in trials:
        for name, host in trial.record["hosts"].items():
            for saving in WASTEFUL & {*(host.get("processor", {}).get("governors") or [])}:
                yield Finding(f"governor {saving} on {name}", trial.where)


@ENVIRONMENT.add(
    "DM-NETWORK", "reject", THREATS,
    "set them alike, in the testbed's file or on the machine, and measure these trials again",
    scope=whole,
)  # fmt: skip
def network_settings_are_the_same(evidence: Evidence) -> Iterator[Finding]:
    """The kernel's network settings, the congestion control among them, were the same at each end
    in all trials of a testbed, but for what the experiment or the testbed sets.
    """
    known: dict[tuple[str, str], dict[str, str]] = {}
    having: dict[tuple[str, str], list[Measured]] = {}
    for trial in evidence.loaded:
        recorded = trial.record.get("network_settings") or {}
        for host, settings in network_settings.restored(recorded).items():
            known[trial.where, host] = settings
            if network_settings.digest(settings) != recorded[host]["sha256"]:
                yield Finding(f"{host}: the hash is not that of its settings", trial.where)
            for name in settings.keys() - trial.sysctl.get(host, {}).keys():
                having.setdefault((host, name), []).append(trial)
    for (host, name), trials in having.items():
        text = f"{host}: {name} was {{}}, elsewhere {{}}"

        def value(trial: Measured, host: str = host, name: str = name) -> str:
            return known[trial.where, host][name]

        yield from differing(trials, lambda trial: trial.record["testbed"], value, text)


@ENVIRONMENT.add("DM-DESCRIPTORS", "reject", THREATS, scope=whole)
def descriptors_are_the_same(evidence: Evidence) -> Iterator[Finding]:
    """All trials of a testbed could open as many descriptors."""
    return differing(
        evidence.loaded, lambda trial: trial.record["testbed"],
        lambda trial: trial.record["descriptors"], "{} descriptors, elsewhere {}",
    )  # fmt: skip
