"""Rules about what else the machine did: nothing took the CPU that server and client were to have.

The bounds are those of the audit (hosts.audit.machine_rules), as far as it has them.
"""

from collections.abc import Iterator

from deathmatch.data.strict.evidence import Evidence, Measured
from deathmatch.data.strict.origin_rules import other_values
from deathmatch.data.strict.rule import AGAIN, THREATS, Seen, Unknown, rule
from deathmatch.errors import UserError
from deathmatch.hosts.audit.machine_rules import REFUSED_BUSY
from deathmatch.plan import files

# A fifth of the time taken away is no noise: a server at 83 % of a CPU would be at its limit.
REJECTED_STEAL = 0.2
WARNED_STEAL = 0.05
# The kernel counts most of this by tick, so that a third of the CPUs may be an error of counting.
WARNED_BUSY = 1 / 3
WASTEFUL = {"powersave"}


def _above(evidence: Evidence, which: int, what: str, above: float, up_to: float) -> Iterator[Seen]:
    for trial in evidence.loaded:
        for found in trial.shares:
            if above < found[which] <= up_to:
                yield Seen(trial.where, f"{found[which]:.0%} {what} at {found[0]} req/s")


STOLEN, OTHERS = "of the CPU time was stolen", "of the CPUs did other work"


@rule(
    "DM-STEAL", THREATS, "reject",
    "The hypervisor took less than a fifth of the CPU time at every rate.",
    "measure these trials again, in a quieter hour or on a dedicated host",
)  # fmt: skip
def little_was_stolen(evidence: Evidence) -> Iterator[Seen]:
    """Look for noisy neighbours on the same host."""
    return _above(evidence, 1, STOLEN, REJECTED_STEAL, 1)


@rule(
    "DM-SOME-STEAL", THREATS, "warn",
    "The hypervisor took less than a twentieth of the CPU time at every rate.",
    "look at these points: servers stood still in that time",
)  # fmt: skip
def hardly_any_was_stolen(evidence: Evidence) -> Iterator[Seen]:
    """Tell where some CPU time was stolen."""
    return _above(evidence, 1, STOLEN, WARNED_STEAL, REJECTED_STEAL)


@rule(
    "DM-NEIGHBOUR", THREATS, "reject",
    "Nothing but server, load generator and kernel used half of the CPUs at any rate.",
    "end what else runs, and measure these trials again",
)  # fmt: skip
def no_other_load(evidence: Evidence) -> Iterator[Seen]:
    """Look for other load on the same machine."""
    return _above(evidence, 2, OTHERS, REFUSED_BUSY, 10)


@rule(
    "DM-SOME-NEIGHBOUR", THREATS, "warn",
    "Nothing but server, load generator and kernel used a third of the CPUs at any rate.",
    "look at these points: something else may have run",
)  # fmt: skip
def little_other_load(evidence: Evidence) -> Iterator[Seen]:
    """Tell where there was some other load."""
    return _above(evidence, 2, OTHERS, WARNED_BUSY, REFUSED_BUSY)


@rule(
    "DM-THROTTLED", THREATS, "reject",
    "The server's CPU was throttled where its testbed says so, by that quota, and nowhere else.",
    AGAIN,
)  # fmt: skip
def throttled_as_the_testbed_says(evidence: Evidence) -> Iterator[Seen | Unknown]:
    """Look for quotas that nobody asked for, or that were not in force."""
    for trial in evidence.loaded:
        record = trial.record
        try:
            side = files.testbed(record["testbed"]).server
        except UserError as error:
            if record.get("throttle"):
                yield Unknown(trial.where, f"its testbed cannot be read: {error.what}")
            continue
        quota_us = (record.get("throttle") or {}).get("cpu_quota_us")
        cpus = len((record.get("cpus") or {}).get("server", []))
        due_us = None
        if side.cpu_share is not None:
            due_us = round(side.cpu_share * cpus * side.cpu_period_us)
        if quota_us != due_us:
            yield Seen(trial.where, f"a quota of {quota_us} us, where the testbed has {due_us}")


@rule(
    "DM-FREQUENCY", THREATS, "reject",
    "The CPUs' governor, turbo and SMT were the same in all trials of a testbed, and none saves "
    "power.",
    "set the governor to performance, and measure these trials again",
)  # fmt: skip
def frequency_is_the_same(evidence: Evidence) -> Iterator[Seen]:
    """Look for CPUs that ran slower; a machine without such settings has nothing to differ."""

    def settings(trial: Measured) -> dict[str, tuple]:
        hosts = trial.record.get("hosts") or {}
        return {
            name: tuple(str(host.get("processor", {}).get(key)) for key in KEYS)
            for name, host in sorted(hosts.items())
        }

    trials = [trial for trial in evidence.loaded if trial.record.get("hosts")]
    for trial, own, most in other_values(trials, lambda t: t.record["testbed"], settings):
        yield Seen(trial.where, f"{', '.join(KEYS)} were {own}, elsewhere {most}")
    for trial in trials:
        for name, host in trial.record["hosts"].items():
            for saving in WASTEFUL & {*(host.get("processor", {}).get("governors") or [])}:
                yield Seen(trial.where, f"governor {saving} on {name}")


KEYS = ("governors", "turbo", "smt_active")


@rule(
    "DM-DESCRIPTORS", THREATS, "reject",
    "All trials of a testbed could open as many descriptors.", AGAIN,
)  # fmt: skip
def descriptors_are_the_same(evidence: Evidence) -> Iterator[Seen]:
    """Look for trials with a lower limit of open files."""
    trials = evidence.loaded
    of_testbed = other_values(
        trials, lambda trial: trial.record["testbed"], lambda trial: trial.record["descriptors"]
    )
    for trial, own, most in of_testbed:
        yield Seen(trial.where, f"{own} descriptors, elsewhere {most}")


RULES = (
    little_was_stolen, hardly_any_was_stolen, no_other_load, little_other_load,
    throttled_as_the_testbed_says, frequency_is_the_same, descriptors_are_the_same,
)  # fmt: skip
