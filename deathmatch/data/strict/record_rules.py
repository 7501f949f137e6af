"""Rules about records and raw logs: each is whole, in its place, there once, and says one thing."""

import hashlib
from collections.abc import Iterator
from itertools import pairwise

from deathmatch.checks.rule import Finding, Rules, Unknown, whole
from deathmatch.data import records
from deathmatch.data.probes import SAMPLES_CSV
from deathmatch.data.records import NotJson
from deathmatch.data.strict.evidence import Evidence
from deathmatch.data.strict.measured import Measured
from deathmatch.data.strict.rule import AGAIN, DATA, DESIGN, every, loaded, readable
from deathmatch.errors import Truncated
from deathmatch.load import registry
from deathmatch.plan.record import BEFORE_WALL, ENDED_WELL, MEASURED

# What a trial under load leaves besides the logs that its points name.
BESIDE = {"trial.json", "samples.csv", "server.log", "strace.txt", "traced.txt", SAMPLES_CSV}

RECORD = Rules(AGAIN, loaded)


@RECORD.add("DM-JSON", "reject", DATA, scope=every)
def is_json(trial: Measured) -> Iterator[str]:
    """Each trial.json is JSON and whole."""
    if isinstance(trial.problem, NotJson):
        yield trial.problem.what


@RECORD.add("DM-RECORD", "reject", DATA, scope=every)
def has_its_keys(trial: Measured) -> Iterator[str]:
    """Each record has the keys and values that its schema names."""
    if trial.problem is not None and not isinstance(trial.problem, NotJson):
        yield f"{trial.problem.where}: {trial.problem.what}"


@RECORD.add(
    "DM-PLACE", "reject", DATA,
    "put the folder back where it was measured, or measure both trials again", scope=readable,
)  # fmt: skip
def is_in_its_place(trial: Measured) -> Iterator[str]:
    """A record names the experiment, server, variant and number of the folder in which it lies."""
    record = trial.record
    # A folder that is older than a factor of its experiment does not name that factor.
    unnamed = {
        (name, level)
        for name, level in records.ADDED.get(record["experiment"], {}).items()
        if f"{name}=" not in trial.key[2]
    }
    pairs = (pair for pair in trial.factors.items() if pair not in unnamed)
    levels = ",".join(f"{name}={level}" for name, level in pairs) or "default"
    key = (record["experiment"], record["server"], levels, str(record["n"]))
    if key != trial.key:
        yield f"its record is of {'/'.join(key)}"


@RECORD.add(
    "DM-TWICE", "reject", DATA, "one is a copy of the other: remove it and measure it", scope=whole
)
def is_there_once(evidence: Evidence) -> Iterator[Finding]:
    """No two trials have the same start on the same server, or a raw log in common, byte by
    byte.
    """
    starts: dict[tuple, str] = {}
    logs: dict[str, str] = {}
    for trial in evidence.readable:
        record = trial.record
        start = (record["started_at"], record["server"], record["experiment"])
        first = starts.setdefault(start, trial.where)
        if first != trial.where and record["outcome"] in MEASURED:
            text = f"it began when {first} did, at {record['started_at']}"
            yield Finding(text, trial.where)
        for name in trial.logs:
            text = trial.log(name)
            digest = hashlib.sha256(text.encode()).hexdigest()
            first = logs.setdefault(digest, f"{trial.where}/{name}")
            if text and first != f"{trial.where}/{name}":
                yield Finding(f"{name} is {first}, byte by byte", trial.where)


@RECORD.add("DM-OUTCOME", "reject", DESIGN, scope=readable)
def outcome_is_that_of_its_points(trial: Measured) -> Iterator[str]:
    """A trial that was measured has points, all of which ran if it had no failures, and with
    failures one that did not, or wrong answers; one that was not has none, and a reason.
    """
    outcome, points = trial.record["outcome"], trial.record["points"]
    if outcome not in MEASURED:
        if points:
            yield f"{outcome!r}, with {len(points)} points"
        elif not trial.record["reason"].strip():
            yield f"{outcome!r}, without a reason"
        return
    if not points:
        yield f"{outcome!r}, without a point"
    failed = any(point["server_state"] != "ran" for point in trial.points)
    wrong = any(point.get("wrong_answers") for point in trial.points)
    due = {MEASURED[1]} if failed else {*MEASURED} if wrong else {MEASURED[0]}
    if trial.points and outcome not in due:
        yield f"{outcome!r}, where {'a' if failed else 'no'} server failed"


@RECORD.add("DM-LOGS", "reject", DATA)
def logs_are_there(trial: Measured) -> Iterator[str]:
    """Each point, and each probe of a search, has the raw log that it names, its samples and what
    the server printed.
    """
    names = {*trial.logs}
    searched = [SAMPLES_CSV] if trial.probes else []
    for name in sorted({*names, *searched, "samples.csv", "server.log"}):
        if not (trial.folder / name).is_file():
            yield f"{name} is gone"
    # `wsload-200.parquet` and `wsload-200.connections.parquet` belong to `wsload-200.txt`.
    begins = tuple(f"{name.rpartition('.')[0]}." for name in names)
    for file in sorted(path for path in trial.folder.iterdir() if path.is_file()):
        known = file.name in names | BESIDE or file.name.startswith(begins)
        if not known and file.name.startswith((f"{trial.spec['client']}-", "probe-")):
            yield f"{file.name} is of no point"


@RECORD.add("DM-WHOLE", "reject", DATA)
def reports_are_whole(trial: Measured) -> Iterator[str]:
    """The report of a load generator that ended well is whole."""
    generator = registry.of_trial(trial.spec)
    for offered in trial.offers:
        for client in offered.clients:
            file = trial.folder / client["log"]
            if client["client_state"] != ENDED_WELL or not file.is_file():
                continue
            try:
                generator.parse(generator.read(file), offered.duration_s)
            except Truncated as error:
                yield f"{client['log']}: {error}"
            except Exception as error:
                # A damaged file may make a parser raise anything.
                yield f"{client['log']}: {type(error).__name__}: {error}"


@RECORD.add(
    "DM-RAW", "reject", DATA,
    "put the raw logs back: folders of trials, or the experiment's raw.tar.xz", scope=whole,
)  # fmt: skip
def raw_logs_can_be_read(evidence: Evidence) -> Iterator[Finding | Unknown]:
    """Raw logs are there and can be read, so that each table can be made again."""
    for name in sorted(evidence.unpacked):
        yield Unknown("no raw logs: nothing could be recomputed", f"{evidence.named}/{name}")
    for trial in evidence.trials:
        if trial.damaged:
            yield Finding(f"its rows cannot be made again: {trial.damaged}", trial.where)


@RECORD.add("DM-SAMPLES", "reject", DATA)
def samples_cover_the_points(trial: Measured) -> Iterator[str]:
    """The kernel was sampled in time order, before, during and after each rate that was offered."""
    if trial.damaged:
        return
    if not trial.samples["time_us"].is_sorted():
        yield "samples.csv: times go back"
    counts = dict(trial.samples["offered_rate_rps"].value_counts().iter_rows())
    for point in trial.points:
        if counts.get(point["offered_rate_rps"], 0) < 2:
            yield f"fewer than two samples at {point['offered_rate_rps']} req/s"


@RECORD.add("DM-TIMES", "reject", DATA)
def times_add_up(trial: Measured) -> Iterator[str]:
    """A trial took as long as its rates were to be offered, its steps add up to that, and no rate
    began before the last one had been offered for its time, which ends one connection early.
    """
    duration_us = trial.spec["duration_s"] * 1e6
    calls = trial.spec.get("load", {}).get("requests_per_connection")

    def least_us(point: dict) -> float:
        between_us = 1e6 * calls / point["offered_rate_rps"] if calls else 0
        return 0.95 * duration_us - between_us

    began = [point["began_us"] for point in trial.points if "began_us" in point]
    for (earlier, later), point in zip(pairwise(began), trial.points):
        ran = point["server_state"] == "ran"
        if later < earlier or (ran and later - earlier < least_us(point)):
            yield f"the rate after {point['offered_rate_rps']} req/s began too early"
    offering, wall = trial.record.get("offering_us"), trial.record.get("wall_us")
    all_ran = all(point["server_state"] == "ran" for point in trial.points)
    in_all_us = sum(map(least_us, trial.points)) if all_ran else 0
    if None not in (offering, wall) and not in_all_us <= offering <= wall:
        yield f"load was offered for {offering} us of {wall} us"
    if steps_us := trial.record.get("steps_us"):
        inside_us = sum(steps_us.values()) - steps_us.get(BEFORE_WALL, 0)
        if inside_us != wall:
            yield f"its steps took {inside_us} us, and all of it {wall} us"
