"""Rules about the server: its settings were those of its variant, as the kernel and checks saw."""

import re
from collections.abc import Iterator

from deathmatch.data.strict.evidence import Evidence, Measured
from deathmatch.data.strict.origin_rules import other_values
from deathmatch.data.strict.rule import AGAIN, DESIGN, Seen, rule

# Each listening socket has a queue of its own, and the sample is their sum.
SEVERAL = {("accept", "reuseport"), ("schedulers", "all")}
TASKSET = re.compile(r"\btaskset --cpu-list (\S+) ")
# A throttled server's group has a name of its own in each trial.
GROUP = re.compile(r"/sys/fs/cgroup\S*")
SOMAXCONN = "net.core.somaxconn"


@rule(
    "DM-CONFORMANCE", DESIGN, "reject",
    "A server was measured only after it had passed every check of its experiment, but for what "
    "its reason names as a known deviation.",
    AGAIN,
)  # fmt: skip
def was_checked(evidence: Evidence) -> Iterator[Seen]:
    """Look for checks that were left out or failed."""
    for trial in evidence.loaded:
        done = {check["name"]: check["ok"] for check in trial.record.get("conformance") or []}
        for check in trial.spec.get("conformance", []):
            if check["name"] not in done:
                yield Seen(trial.where, f"{check['name']!r} was not checked")
        for name, ok in done.items():
            if not ok and f"{name}:" not in trial.record["reason"]:
                yield Seen(trial.where, f"{name!r} failed, and is no known deviation")


@rule(
    "DM-BACKLOG", DESIGN, "reject",
    "The accept queue was as long as the variant says, capped at somaxconn, in every sample.",
    "find out which backlog the server asked for; measure it again",
)  # fmt: skip
def backlog_is_the_variants(evidence: Evidence) -> Iterator[Seen]:
    """Look for queues of another length."""
    for trial in evidence.loaded:
        backlog = trial.factors.get("backlog")
        if not isinstance(backlog, int) or trial.damaged:
            continue
        sysctl = (trial.record.get("sysctl") or {}).get("server", {})
        due = min(backlog, int(sysctl.get(SOMAXCONN, backlog)))
        limits = trial.samples["accept_queue_limit"].drop_nulls()
        # 0 while nothing listens.
        limits = sorted(limits.filter(limits > 0).unique())
        several = any(trial.factors.get(name) == level for name, level in SEVERAL)
        wrong = [limit for limit in limits if limit != due and not (several and limit % due == 0)]
        if wrong:
            yield Seen(trial.where, f"a queue of {wrong[0]} connections, where {due} were due")
        name = f"listen backlog {backlog},"
        checks = trial.record.get("conformance") or []
        if not any(check["name"].startswith(name) and check["ok"] for check in checks):
            yield Seen(trial.where, f"no check saw a listen backlog of {backlog}")


@rule(
    "DM-READINESS", DESIGN, "reject",
    "The kernel saw the server wait as its variant says: with epoll, poll, select or io_uring.",
    "find out what the server waits with; measure it again",
)  # fmt: skip
def readiness_is_the_variants(evidence: Evidence) -> Iterator[Seen]:
    """Look for servers that wait otherwise than they are labelled."""
    for trial in evidence.loaded:
        how = trial.factors.get("readiness")
        seen = {
            check["name"].removeprefix("waits with "): check["ok"]
            for check in trial.record.get("conformance") or []
            if check["name"].startswith("waits with ")
        }
        if how is not None and not seen.get(how):
            told = ", ".join(name for name, ok in seen.items() if ok) or "nothing that was checked"
            yield Seen(trial.where, f"it waits with {told}, not {how}")


@rule(
    "DM-IDLE", DESIGN, "reject",
    "All idle connections were still held after each rate that the server survived.", AGAIN,
)  # fmt: skip
def idle_connections_were_held(evidence: Evidence) -> Iterator[Seen]:
    """Look for idle connections that were lost."""
    for trial in evidence.loaded:
        due = trial.factors.get("idle_connections") or 0
        for point in trial.points:
            held = point.get("idle_held") or 0
            if due and point["server_state"] == "ran" and held < due:
                at = f"at {point['offered_rate_rps']} req/s"
                yield Seen(trial.where, f"{held} of {due} idle connections {at}")


@rule(
    "DM-SYSCTL", DESIGN, "reject",
    "Each kernel setting was in force as the variant says, and else as in the testbed's other "
    "trials.",
    AGAIN,
)  # fmt: skip
def settings_were_in_force(evidence: Evidence) -> Iterator[Seen]:
    """Look for kernel settings that differ."""
    for trial in evidence.loaded:
        found = (trial.record.get("sysctl") or {}).get("server", {})
        for name, value in trial.spec.get("sysctl", {}).items():
            if str(found.get(name)).split() != str(value).split():
                yield Seen(trial.where, f"{name} was {found.get(name)}, not {value}")
    settings = [(trial, _settings(trial)) for trial in evidence.loaded]
    for name in sorted({name for _, found in settings for name in found}):
        # Where a factor sets it, it is not there.
        trials = [trial for trial, found in settings if name in found]
        values = {trial.where: found[name] for trial, found in settings if name in found}
        for trial, own, most in other_values(trials, _testbed, lambda one: values[one.where]):  # noqa: B023
            yield Seen(trial.where, f"{name} was {own}, elsewhere {most}")


def _testbed(trial: Measured) -> str:
    return trial.record["testbed"]


def _settings(trial: Measured) -> dict[str, str]:
    """Return the settings of each side that no factor of the experiment sets."""
    varied = trial.spec.get("sysctl", {})
    return {
        f"{side} {name}": value
        for side, settings in sorted((trial.record.get("sysctl") or {}).items())
        for name, value in sorted(settings.items())
        if not (side == "server" and name in varied)
    }


@rule(
    "DM-CPUS", DESIGN, "reject",
    "Server and client ran on the CPUs that the testbed gives them, and the server was started so.",
    AGAIN,
)  # fmt: skip
def cpus_are_the_testbeds(evidence: Evidence) -> Iterator[Seen]:
    """Look for trials on other CPUs."""

    def group(trial: Measured) -> tuple:
        return _testbed(trial), trial.factors.get("schedulers") == "all"

    trials = [trial for trial in evidence.loaded if trial.record.get("cpus")]
    for trial, own, most in other_values(trials, group, lambda trial: trial.record["cpus"]):
        yield Seen(trial.where, f"on {own}, elsewhere on {most}")
    for trial in trials:
        pinned = TASKSET.search(_started(trial))
        due = ",".join(map(str, trial.record["cpus"].get("server", [])))
        if pinned and pinned[1] != due:
            yield Seen(trial.where, f"the server was started on CPUs {pinned[1]}, not {due}")


@rule(
    "DM-STARTED", DESIGN, "reject",
    "All trials of a variant started the server by one command.",
    "a label was swapped, or the server changed: measure its trials again",
)  # fmt: skip
def started_by_one_command(evidence: Evidence) -> Iterator[Seen]:
    """Look for trials that started something else than their fellows."""
    trials = [trial for trial in evidence.loaded if _started(trial)]
    for trial, own, most in other_values(trials, lambda trial: trial.key[:3], _started):
        yield Seen(trial.where, f"{own}, and in other trials {most}")


def _started(trial: Measured) -> str:
    """Return the first command in the server's log."""
    first = trial.log("server.log").partition("\n")[0]
    return GROUP.sub("GROUP", first) if first.startswith("$ ") else ""


@rule(
    "DM-STOPPED", DESIGN, "reject",
    "Each server that was started was stopped, and nothing of it was left.", AGAIN,
)  # fmt: skip
def nothing_was_left(evidence: Evidence) -> Iterator[Seen]:
    """Look for processes that outlived their trial."""
    for trial in evidence.loaded:
        stops = trial.record.get("stops") or []
        if not stops:
            yield Seen(trial.where, "nothing says that the server was stopped")
        for stop in stops:
            if stop.get("left"):
                yield Seen(trial.where, f"{len(stop['left'])} processes were left")


RULES = (
    was_checked, backlog_is_the_variants, readiness_is_the_variants, idle_connections_were_held,
    settings_were_in_force, cpus_are_the_testbeds, started_by_one_command, nothing_was_left,
)  # fmt: skip
