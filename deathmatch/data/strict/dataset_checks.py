"""Checks of a whole dataset, from the evidence to findings: its plan, origin, rounds, files."""

import datetime as dt
import getpass
import hashlib
import json
import re
import socket
from collections.abc import Iterator
from statistics import median

from deathmatch.builds import tool_differences
from deathmatch.checks.findings import Finding
from deathmatch.data import sittings
from deathmatch.data.laws import LAWS
from deathmatch.data.laws.law import TRIAL
from deathmatch.data.strict.evidence import Evidence, Trial, fault
from deathmatch.hosts import hardware, network_settings
from deathmatch.plan.paths import ROOT
from deathmatch.plan.record import loads

RUN = "run snakemake: it measures what is missing"
COPY = "one is a copy of the other: remove it and measure it"
BACK = "put the folder back where it was measured, or measure both trials again"
APART = "measure these trials again, or keep them in a dataset of their own"
COMMIT = "commit, and measure again; or waive it in the dataset's file, with the reason"
COUNTED = "find out what counted wrongly, and measure these trials again"
CHECKSUMS = "checksums.sha256"
# In a frozen dataset it may differ from that of today's sources.
SOURCES = "server_sha256"
LONGEST_ROUND = dt.timedelta(hours=1)
PROCESSOR = ("governors", "turbo", "smt_active")
# A server's cgroup has a different name in each trial.
GROUP = re.compile(r"/sys/fs/cgroup\S*")
# Options of clients that do not change the load.
PLACES = re.compile(r" --(?:source|start-at)=\S+")
# Names of machines and users that are not private.
COMMON = {"debian", "localhost", "nixos", "nobody", "root", "ubuntu", "user"}
HOMES = r"(?:/home/[\w.-]+|/root|/Users/[\w.-]+)/"


def planned(evidence: Evidence) -> Iterator[Finding]:
    """Each planned trial is there, from number 1 on for each variant, and no impossible one.

    The plan of a frozen dataset may have changed later.
    """
    due = {*evidence.wanted}
    for where in evidence.found:
        variant, _, n = where.rpartition("/")
        trial = evidence.planned.get(where)
        least = evidence.dataset.repetitions(trial.plan) if trial else 1
        count = max(least, int(n) if n.isdecimal() else 0)
        # Sittings are measured in any order.
        first = count + 1 if evidence.dataset.sittings else 1
        due |= {f"{variant}/{number}" for number in range(first, count + 1)}
        if trial is None and evidence.planned and not evidence.dataset.frozen:
            text = "the dataset has no such trial"
            yield fault("DM-UNPLANNED", where, text, "remove it, or plan it")
    for where in sorted(due - evidence.found):
        yield fault("DM-MISSING", where, "it is planned, but missing", RUN)


def in_sittings(evidence: Evidence) -> Iterator[Finding]:
    """Each trial of a dataset in sittings is of an accepted one, and these lack no trial."""
    spec = evidence.dataset
    kept = sittings.latest(spec.name) if spec.sittings else {}
    found: dict[str, list[str]] = {}
    for where in sorted(evidence.found) if spec.sittings else ():
        experiment, _, _, n = where.split("/")[-4:]
        name = spec.sitting_of(experiment, int(n)) if n.isdecimal() else None
        if name not in kept or kept[name].refused:
            yield fault("DM-SITTING", where, "no accepted sitting has it", RUN)
        else:
            found.setdefault(name, []).append(where)
    for name, places in found.items():
        if len(places) != kept[name].trials:
            text = f"{len(places)} trials of {name}, of which {kept[name].trials} were judged"
            yield fault("DM-SITTING", evidence.name(sittings.NAME), text, BACK)


def specified(evidence: Evidence) -> Iterator[Finding]:
    """Each trial has the specification of its dataset, experiment and server."""
    for trial in evidence.trials:
        if trial.where not in evidence.planned:
            continue
        now = json.loads(evidence.planned[trial.where].spec_text())
        for key in sorted({*now, *trial.spec} - ({SOURCES} if evidence.dataset.frozen else set())):
            if now.get(key) != trial.spec.get(key):
                text = f"{key} is not as specified: {_short(json.dumps(trial.spec.get(key)))}"
                yield fault("DM-SPEC", trial.where, text)


def placed(evidence: Evidence) -> Iterator[Finding]:
    """A record has the experiment, server and number of its path, and the dataset's seed."""
    for trial in evidence.trials:
        record, (experiment, server, _, n) = trial.record, trial.key
        own = record["experiment"], record["server"], str(record["n"])
        if own != (experiment, server, n):
            yield fault("DM-PLACE", trial.where, f"its record is of {own}", BACK)
        # Records of schema version 1 have no seed.
        if record.get("seed", evidence.dataset.seed) != evidence.dataset.seed:
            text = f"seed {record['seed']}, and the dataset's is {evidence.dataset.seed}"
            yield fault("DM-SEED", trial.where, text)


def tools_and_machine(evidence: Evidence) -> Iterator[Finding]:
    """All trials of a round have the same kind of machine, those of an experiment the same load
    generator, those of a server the same package or store path of each tool.
    """
    trials = [(trial.where, trial.record) for trial in evidence.trials]
    differing = [("DM-TOOLS", *one) for one in tool_differences.differences(trials)]
    differing += [("DM-MACHINE", *one) for one in hardware.differences(trials)]
    for check, name, places in differing:
        usual, *values = places
        for value in values:
            text = f"{name} is {value}, and {usual} elsewhere"
            yield fault(check, places[value], text, APART)


def clean_commit(evidence: Evidence) -> Iterator[Finding]:
    """Each trial was measured by a commit of this project without uncommitted changes."""
    for trial in evidence.trials:
        machine = trial.record.get("machine") or {}
        commit = machine.get("commit") or f"unknown: {machine.get('commit_unknown')}"
        if trial.is_measured and (commit.endswith("-dirty") or commit.startswith("unknown")):
            yield fault("DM-COMMIT", trial.where, f"commit {commit}", COMMIT)


def in_rounds(evidence: Evidence) -> Iterator[Finding]:
    """Each trial began within an hour of the middle of its round.

    Ratios are formed within rounds, so that the machine's drift cancels; over hours it does not.
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
                yield fault("DM-INTERLEAVED", where, text, APART)


def alike(evidence: Evidence) -> Iterator[Finding]:
    """Trials of a group have the same values; a trial that differs from most is at fault."""
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
                yield fault(check, where, text, APART)


def _must_be_alike(trial: Trial) -> Iterator[tuple[str, str, object, object]]:
    """Yield a check, the name of a value, the group that must have the same, and the value."""
    record, spec = trial.record, trial.spec
    experiment, server, *_ = trial.key
    yield "DM-RECORD", "schema version", "", record.get("schema_version", 1)
    for name, value in spec.items():
        yield "DM-SPEC", name, trial.key[:3], value
    if trial.is_measured:
        yield "DM-SERVER", "sources", server, spec[SOURCES]
        yield "DM-SERVER", "version", server, record["version"]
    for side, tools in record["tools"].items():
        yield "DM-TOOLS", f"names of the {side}'s tools", (experiment, server), sorted(tools)
    if not trial.points:
        return
    # Rounds may have different machines, on which these may differ too.
    machine = record.get("machine") or {}
    testbed = record["testbed"], machine.get("cpu"), machine.get("kernel")
    pinned = spec["factors"].get("schedulers") == "all"
    yield "DM-DESCRIPTORS", "descriptors", testbed, record["descriptors"]
    if record.get("cpus"):
        yield "DM-CPUS", "CPUs", (testbed, pinned), record["cpus"]
    for point in trial.points:
        for index, client in enumerate(loads(point)):
            what = f"command {index} at {point['offered_rate_rps']} req/s"
            yield "DM-COMMAND", what, trial.key[:3], PLACES.sub("", client["command"] or "")
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


def counters(evidence: Evidence) -> Iterator[Finding]:
    """No point breaks a law of severity "reject"; the others are warnings."""
    for experiment, points in evidence.points.items():
        for row in points.explode("laws_broken").drop_nulls("laws_broken").iter_rows(named=True):
            law = LAWS.get(row["laws_broken"])
            where = evidence.name(experiment, *(row[name] for name in TRIAL))
            text = f"{row['laws_broken']} is broken at {row['offered_rate_rps']} req/s"
            if law and law.severity == "reject":
                yield fault("DM-COUNTERS", where, f"{text}: {law.statement}", COUNTED)
            elif law:
                yield Finding("DM-LAW", "warn", where, text)


def only_once(evidence: Evidence) -> Iterator[Finding]:
    """No two trials have identical raw logs."""
    known: dict[bytes, str] = {}
    for trial in evidence.trials:
        for name in sorted({client["log"] for point, _ in trial.offers for client in loads(point)}):
            text = trial.log(name).encode()
            first = known.setdefault(hashlib.sha256(text).digest(), f"{trial.where}/{name}")
            if text and first != f"{trial.where}/{name}":
                yield fault("DM-TWICE", trial.where, f"{name} is {first}", COPY)


def checksums(evidence: Evidence) -> Iterator[Finding]:
    """Each file has its checksum, if the dataset has any, as sha256sum(1) writes them."""
    file = evidence.folder / CHECKSUMS
    for line in file.read_text(errors="replace").splitlines() if file.is_file() else ():
        checksum, _, name = line.partition("  ")
        listed = evidence.folder / name
        digest = hashlib.sha256(listed.read_bytes()).hexdigest() if listed.is_file() else "gone"
        if digest != checksum:
            text = "it is gone" if digest == "gone" else "its checksum differs"
            yield fault("DM-CHECKSUMS", evidence.name(name), text, "get the dataset again")


def nothing_private(evidence: Evidence) -> Iterator[Finding]:
    """No record, log or report names the machine, its user or a home folder."""
    names = {socket.gethostname(), getpass.getuser()} - COMMON
    words = [rf"\b{re.escape(name)}\b" for name in sorted(names) if len(name) > 3]
    pattern = re.compile("|".join([HOMES, re.escape(f"{ROOT}/"), *words]))
    folders = {evidence.folder: evidence.name()}
    folders |= {trial.folder: trial.where for trial in evidence.trials}
    for folder, named in folders.items():
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            if found := pattern.search(path.read_text(errors="replace")):
                where = f"{named}/{path.relative_to(folder)}"
                yield fault("DM-PRIVATE", where, found[0], "take it out, and pack again")
