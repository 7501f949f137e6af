"""What trials are of: the dataset's plan, one specification, machine and toolchain, a commit.

Plain functions from the evidence to findings.
"""

import datetime as dt
import json
import re
from collections.abc import Iterator
from statistics import median

from deathmatch.builds import tool_differences
from deathmatch.checks.findings import Finding
from deathmatch.data.strict.evidence import AGAIN, Evidence, Trial
from deathmatch.hosts import hardware, network_settings

RUN = "run snakemake: it measures what is missing"
BACK = "put the folder back where it was measured, or measure both trials again"
APART = "measure these trials again, or keep them in a dataset of their own"
COMMIT = "commit, and measure again; or waive it in the dataset's file, with the reason"
# The servers of a frozen dataset keep the fingerprint that their sources had.
SOURCES = "server_sha256"
LONGEST_ROUND = dt.timedelta(hours=1)
PROCESSOR = ("governors", "turbo", "smt_active")
# A throttled server's group has a name of its own in each trial.
GROUP = re.compile(r"/sys/fs/cgroup\S*")


def planned(evidence: Evidence) -> Iterator[Finding]:
    """Each planned trial is there, those of a variant from 1 on, and none that cannot be.

    A frozen dataset's plan may have changed since.
    """
    due = {*evidence.wanted}
    for where in evidence.found:
        variant, _, n = where.rpartition("/")
        trial = evidence.planned.get(where)
        least = evidence.dataset.repetitions(trial.plan) if trial else 1
        count = max(least, int(n) if n.isdecimal() else 0)
        due |= {f"{variant}/{number}" for number in range(1, count + 1)}
        if trial is None and evidence.planned and not evidence.dataset.frozen:
            text = "the dataset has no such trial"
            yield Finding("DM-UNPLANNED", "reject", where, text, "remove it, or plan it")
    for where in sorted(due - evidence.found):
        yield Finding("DM-MISSING", "reject", where, "it is planned, and not there", RUN)


def specified(evidence: Evidence) -> Iterator[Finding]:
    """Each trial was measured as the dataset, its experiment and its server specify it."""
    for trial in evidence.trials:
        if trial.where not in evidence.planned:
            continue
        now = json.loads(evidence.planned[trial.where].spec_text())
        for key in sorted({*now, *trial.spec} - ({SOURCES} if evidence.dataset.frozen else set())):
            if now.get(key) != trial.spec.get(key):
                text = f"{key} is not as specified: {_short(json.dumps(trial.spec.get(key)))}"
                yield Finding("DM-SPEC", "reject", trial.where, text, AGAIN)


def placed(evidence: Evidence) -> Iterator[Finding]:
    """A record names the experiment, server, number and seed of the dataset in which it lies."""
    for trial in evidence.trials:
        record, (experiment, server, _, n) = trial.record, trial.key
        own = record["experiment"], record["server"], str(record["n"])
        if own != (experiment, server, n):
            yield Finding("DM-PLACE", "reject", trial.where, f"its record is of {own}", BACK)
        # The first records have none.
        if record.get("seed", evidence.dataset.seed) != evidence.dataset.seed:
            text = f"seed {record['seed']}, and the dataset's is {evidence.dataset.seed}"
            yield Finding("DM-SEED", "reject", trial.where, text, AGAIN)


def tools_and_machine(evidence: Evidence) -> Iterator[Finding]:
    """All trials have one kind of machine, those of an experiment one kernel and load generator,
    those of a server one package or store path of each of its tools.
    """
    trials = [(trial.where, trial.record) for trial in evidence.trials]
    differing = [("DM-TOOLS", *one) for one in tool_differences.differences(trials)]
    differing += [("DM-MACHINE", *one) for one in hardware.differences(trials)]
    for check, name, places in differing:
        usual, *values = places
        for value in values:
            text = f"{name} is {value}, and {usual} elsewhere"
            yield Finding(check, "reject", places[value], text, APART)
    for trial in evidence.trials:
        if not trial.record.get("tools"):
            yield Finding("DM-TOOLS", "reject", trial.where, "its record names no tools", AGAIN)


def clean_commit(evidence: Evidence) -> Iterator[Finding]:
    """Each trial was measured by a commit of this project without uncommitted changes."""
    for trial in evidence.trials:
        machine = trial.record.get("machine") or {}
        commit = machine.get("commit") or f"unknown: {machine.get('commit_unknown')}"
        if trial.is_measured and (commit.endswith("-dirty") or commit.startswith("unknown")):
            yield Finding("DM-COMMIT", "reject", trial.where, f"commit {commit}", COMMIT)


def in_rounds(evidence: Evidence) -> Iterator[Finding]:
    """Each trial began within an hour of the middle of its round.

    Ratios are formed within rounds, so that the machine's drift cancels; hours later it does not.
    """
    rounds: dict[tuple[str, str], dict[str, float]] = {}
    for trial in evidence.trials:
        began_s = dt.datetime.fromisoformat(trial.record["started_at"]).timestamp()
        rounds.setdefault((trial.key[0], trial.key[3]), {})[trial.where] = began_s
    for (_, n), began in rounds.items():
        middle_s = median(began.values())
        for where, began_s in began.items():
            off = dt.timedelta(seconds=abs(began_s - middle_s))
            if off > LONGEST_ROUND:
                text = f"it began {off} from the middle of round {n}"
                yield Finding("DM-INTERLEAVED", "reject", where, text, APART)


def alike(evidence: Evidence) -> Iterator[Finding]:
    """What must be one in all trials of a group is, as in most of them."""
    groups: dict[tuple, dict[str, list[str]]] = {}
    for trial in evidence.trials:
        for check, what, group, value in _must_be_alike(trial):
            places = groups.setdefault((check, what, group), {})
            places.setdefault(json.dumps(value, sort_keys=True), []).append(trial.where)
    for (check, what, _), values in groups.items():
        usual = max(values, key=lambda text: len(values[text]))
        for value, places in values.items():
            text = f"{what}: {_short(value)}, elsewhere {_short(usual)}"
            for where in places if value != usual else ():
                yield Finding(check, "reject", where, text, APART)


def _must_be_alike(trial: Trial) -> Iterator[tuple[str, str, object, object]]:
    """Yield check, what it is, the group in which it must be alike, and the trial's value."""
    record, spec = trial.record, trial.spec
    experiment, server, *_ = trial.key
    yield "DM-RECORD", "schema version", "", record.get("schema_version", 1)
    for name, value in spec.items():
        yield "DM-SPEC", name, trial.key[:3], value
    if trial.is_measured:
        yield "DM-SERVER", "sources", server, spec[SOURCES]
        yield "DM-SERVER", "version", server, record["version"]
    for side, tools in record.get("tools", {}).items():
        yield "DM-TOOLS", f"names of the {side}'s tools", (experiment, server), sorted(tools)
    if not trial.points:
        return
    testbed, pinned = record["testbed"], trial.factors.get("schedulers") == "all"
    yield "DM-DESCRIPTORS", "descriptors", testbed, record["descriptors"]
    if record.get("cpus"):
        yield "DM-CPUS", "CPUs", (testbed, pinned), record["cpus"]
    first = trial.log("server.log").partition("\n")[0]
    if first.startswith("$ "):
        yield "DM-STARTED", "start", trial.key[:3], GROUP.sub("GROUP", first)
    for name, host in (record.get("hosts") or {}).items():
        seen = [str(host.get("processor", {}).get(key)) for key in PROCESSOR]
        yield "DM-FREQUENCY", f"{', '.join(PROCESSOR)} of {name}", testbed, seen
    recorded = network_settings.restored(record.get("network_settings") or {})
    for host, own in (record.get("sysctl") or {}).items():
        varied = spec.get("sysctl", {}) if host == "server" else {}
        settings = recorded.get(host, {}) | own
        for name in settings.keys() - varied.keys():
            yield "DM-SYSCTL", f"{host} {name}", testbed, settings[name]
    for row in trial.rows.get("points", []) if spec["client"] == "wsload" else ():
        if row["report"] == "whole":
            rate_rps = row["offered_rate_rps"]
            pacing = row.get("client_step_us"), row.get("client_hold_us")
            yield "DM-PACING", f"step and hold at {rate_rps}/s", (experiment, rate_rps), pacing


def _short(text: str) -> str:
    return text if len(text) < 80 else f"{text[:77]}..."
