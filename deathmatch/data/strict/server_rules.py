"""Rules about the server: its settings were those of its variant, as the kernel and checks saw."""

import re
from collections.abc import Iterator

from deathmatch.checks.rule import Finding, Rules, whole
from deathmatch.data.strict.evidence import Evidence
from deathmatch.data.strict.measured import Measured
from deathmatch.data.strict.origin_rules import differing
from deathmatch.data.strict.rule import AGAIN, DESIGN, loaded
from deathmatch.plan.trial import conformance_key

# Each listening socket has a queue of its own, and the sample is their sum.
SEVERAL = {("accept", "reuseport"), ("schedulers", "all")}
TASKSET = re.compile(r"\btaskset --cpu-list (\S+) ")
# A throttled server's group has a name of its own in each trial.
GROUP = re.compile(r"/sys/fs/cgroup\S*")
SOMAXCONN = "net.core.somaxconn"
WAITS = "waits with "

SERVER = Rules(AGAIN, loaded)


@SERVER.add("DM-CONFORMANCE", "reject", DESIGN)
def was_checked(trial: Measured) -> Iterator[str]:
    """A server was measured only after it had passed every check of its experiment, but for what
    its reason names as a known deviation. Where another trial has the checks in full, as
    DM-CONFORMANCE-FULL asks, some may be missing.
    """
    done = {check["name"]: check["ok"] for check in trial.checks}
    full = trial.record.get("full_conformance") or {"trial": trial.record["n"]}
    in_full = full["trial"] == trial.record["n"]
    for check in trial.spec.get("conformance", []):
        if in_full and check["name"] not in done:
            yield f"{check['name']!r} was not checked"
    for name, ok in done.items():
        if not ok and f"{name}:" not in trial.record["reason"]:
            yield f"{name!r} failed, and is not a known deviation"


@SERVER.add("DM-CONFORMANCE-FULL", "reject", DESIGN, scope=whole)
def full_checks_are_of_the_same_build(evidence: Evidence) -> Iterator[Finding]:
    """A trial with a short form of the checks names a trial of its variant that has them in full,
    of the same checks, sources, tools, testbed and kernel.
    """
    by_key = {trial.key: trial for trial in evidence.loaded}
    for trial in evidence.loaded:
        full = trial.record.get("full_conformance")
        if not full:
            continue
        if full["key"] != conformance_key(trial.record):
            yield Finding("its key is not that of what its record says", trial.where)
        if full["trial"] == trial.record["n"]:
            continue
        other = by_key.get((*trial.key[:3], str(full["trial"])))
        if other is None:
            yield Finding(f"trial {full['trial']} had them in full, and is not there", trial.where)
        elif other.record.get("full_conformance") != full:
            yield Finding(f"trial {full['trial']} had others, or a short form", trial.where)


@SERVER.add(
    "DM-BACKLOG", "reject", DESIGN, "find out which backlog the server asked for; measure it again"
)
def backlog_is_the_variants(trial: Measured) -> Iterator[str]:
    """The accept queue was as long as the variant says, capped at somaxconn, in every sample."""
    backlog = trial.factors.get("backlog")
    if not isinstance(backlog, int) or trial.damaged:
        return
    sysctl = trial.sysctl.get("server", {})
    due = min(backlog, int(sysctl.get(SOMAXCONN, backlog)))
    limits = trial.samples["accept_queue_limit"].drop_nulls()
    # 0 while nothing listens.
    limits = sorted(limits.filter(limits > 0).unique())
    several = any(trial.factors.get(name) == level for name, level in SEVERAL)
    wrong = [limit for limit in limits if limit != due and not (several and limit % due == 0)]
    if wrong:
        yield f"a queue of {wrong[0]} connections, where {due} were due"
    name = f"listen backlog {backlog},"
    if not any(check["name"].startswith(name) and check["ok"] for check in trial.checks):
        yield f"no check saw a listen backlog of {backlog}"


@SERVER.add(
    "DM-READINESS", "reject", DESIGN, "find out what the server waits with; measure it again"
)
def readiness_is_the_variants(trial: Measured) -> Iterator[str]:
    """The kernel saw the server wait as its variant says: with epoll, poll, select or io_uring."""
    due = trial.factors.get("readiness")
    seen = [
        check["name"].removeprefix(WAITS)
        for check in trial.checks
        if check["name"].startswith(WAITS) and check["ok"]
    ]
    if due is not None and due not in seen:
        yield f"it waits with {', '.join(seen) or 'nothing that was checked'}, not {due}"


@SERVER.add("DM-IDLE", "reject", DESIGN)
def idle_connections_were_held(trial: Measured) -> Iterator[str]:
    """All idle connections were still held after each rate that the server survived."""
    due = trial.factors.get("idle_connections") or 0
    for point in trial.points:
        held = point.get("idle_held") or 0
        if due and point["server_state"] == "ran" and held < due:
            yield f"{held} of {due} idle connections at {point['offered_rate_rps']} req/s"


@SERVER.add("DM-SYSCTL", "reject", DESIGN, scope=whole)
def settings_were_in_force(evidence: Evidence) -> Iterator[Finding]:
    """Each kernel setting was in force as the variant says, and else as in the testbed's other
    trials.
    """
    for trial in evidence.loaded:
        seen = trial.sysctl.get("server", {})
        for name, value in trial.spec.get("sysctl", {}).items():
            if str(seen.get(name)).split() != str(value).split():
                yield Finding(f"{name} was {seen.get(name)}, not {value}", trial.where)
    settings = {trial.where: _settings(trial) for trial in evidence.loaded}
    for name in sorted({name for values in settings.values() for name in values}):
        # Where a factor sets it, it is not there.
        trials = [trial for trial in evidence.loaded if name in settings[trial.where]]

        def value(trial: Measured, name: str = name) -> str:
            return settings[trial.where][name]

        yield from differing(trials, _testbed, value, f"{name} was {{}}, elsewhere {{}}")


def _testbed(trial: Measured) -> str:
    return trial.record["testbed"]


def _settings(trial: Measured) -> dict[str, str]:
    """Return the settings of each side that no factor of the experiment sets."""
    varied = trial.spec.get("sysctl", {})
    return {
        f"{side} {name}": value
        for side, settings in sorted(trial.sysctl.items())
        for name, value in sorted(settings.items())
        if not (side == "server" and name in varied)
    }


@SERVER.add("DM-CPUS", "reject", DESIGN, scope=whole)
def cpus_are_the_testbeds(evidence: Evidence) -> Iterator[Finding]:
    """Server and client ran on the CPUs that the testbed gives them, and the server was started
    so.
    """

    def group(trial: Measured) -> tuple:
        return _testbed(trial), trial.factors.get("schedulers") == "all"

    trials = [trial for trial in evidence.loaded if trial.record.get("cpus")]
    text = "on {}, elsewhere on {}"
    yield from differing(trials, group, lambda trial: trial.record["cpus"], text)
    for trial in trials:
        pinned = TASKSET.search(_started(trial))
        due = ",".join(map(str, trial.record["cpus"].get("server", [])))
        if pinned and pinned[1] != due:
            text = f"the server was started on CPUs {pinned[1]}, not {due}"
            yield Finding(text, trial.where)


@SERVER.add(
    "DM-STARTED", "reject", DESIGN,
    "a label was swapped, or the server changed: measure its trials again", scope=whole,
)  # fmt: skip
def started_by_one_command(evidence: Evidence) -> Iterator[Finding]:
    """All trials of a variant started the server by one command."""
    trials = [trial for trial in evidence.loaded if _started(trial)]
    text = "{}, and in other trials {}"
    return differing(trials, lambda trial: trial.key[:3], _started, text)


def _started(trial: Measured) -> str:
    """Return the first command in the server's log."""
    first = trial.log("server.log").partition("\n")[0]
    return GROUP.sub("GROUP", first) if first.startswith("$ ") else ""


@SERVER.add("DM-STOPPED", "reject", DESIGN)
def nothing_was_left(trial: Measured) -> Iterator[str]:
    """Each server that was started was stopped, and nothing of it was left."""
    stops = trial.record.get("stops") or []
    if not stops:
        yield "nothing says that the server was stopped"
    for stop in stops:
        if stop.get("left"):
            yield f"{len(stop['left'])} processes were left"
