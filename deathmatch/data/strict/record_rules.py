"""Rules about records and raw logs: each is whole, in its place, there once, and says one thing."""

import hashlib
from collections.abc import Iterator

from deathmatch.data import records
from deathmatch.data.records import NotJson
from deathmatch.data.strict.evidence import Evidence, Measured
from deathmatch.data.strict.rule import AGAIN, DATA, DESIGN, Seen, Unknown, rule
from deathmatch.errors import Truncated
from deathmatch.load import registry
from deathmatch.measure.probes import SAMPLES_CSV
from deathmatch.plan import record as plan
from deathmatch.plan.record import ENDED_WELL, MEASURED

# What a trial under load leaves beside the logs that its points name.
BESIDE = {"trial.json", "samples.csv", "server.log", "strace.txt", "traced.txt", SAMPLES_CSV}


@rule(
    "DM-JSON", DATA, "reject",
    "Each trial.json is JSON and whole.", AGAIN,
)  # fmt: skip
def is_json(evidence: Evidence) -> Iterator[Seen]:
    """Look for records that are truncated."""
    for trial in evidence.trials:
        if isinstance(trial.problem, NotJson):
            yield Seen(trial.where, trial.problem.what)


@rule(
    "DM-RECORD", DATA, "reject",
    "Each record has the keys and values that its schema names.", AGAIN,
)  # fmt: skip
def has_its_keys(evidence: Evidence) -> Iterator[Seen]:
    """Look for records that lack a key."""
    for trial in evidence.trials:
        if trial.problem is not None and not isinstance(trial.problem, NotJson):
            yield Seen(trial.where, f"{trial.problem.where}: {trial.problem.what}")


@rule(
    "DM-PLACE", DATA, "reject",
    "A record names the experiment, server, variant and number of the folder in which it lies.",
    "put the folder back where it was measured, or measure both trials again",
)  # fmt: skip
def is_in_its_place(evidence: Evidence) -> Iterator[Seen]:
    """Look for swapped labels."""
    for trial in evidence.readable:
        told = trial.record
        # A folder of before an experiment had a factor does not name it.
        unnamed = {
            (name, level)
            for name, level in records.ADDED.get(told["experiment"], {}).items()
            if f"{name}=" not in trial.key[2]
        }
        pairs = (pair for pair in trial.factors.items() if pair not in unnamed)
        levels = ",".join(f"{name}={level}" for name, level in pairs) or "default"
        says = (told["experiment"], told["server"], levels, str(told["n"]))
        if says != trial.key:
            yield Seen(trial.where, f"its record is of {'/'.join(says)}")


@rule(
    "DM-TWICE", DATA, "reject",
    "No two trials have the same start on the same server, or a raw log in common, byte by byte.",
    "one is a copy of the other: remove it and measure it",
)  # fmt: skip
def is_there_once(evidence: Evidence) -> Iterator[Seen]:
    """Look for one trial that is there as two."""
    starts: dict[tuple, str] = {}
    logs: dict[str, str] = {}
    for trial in evidence.readable:
        record = trial.record
        start = (record["started_at"], record["server"], record["experiment"])
        first = starts.setdefault(start, trial.where)
        if first != trial.where and record["outcome"] in MEASURED:
            yield Seen(trial.where, f"it began when {first} did, at {record['started_at']}")
        names = [load["log"] for point, *_ in trial.offers for load in plan.loads(point)]
        for name in names:
            text = trial.log(name)
            digest = hashlib.sha256(text.encode()).hexdigest()
            first = logs.setdefault(digest, f"{trial.where}/{name}")
            if text and first != f"{trial.where}/{name}":
                yield Seen(trial.where, f"{name} is {first}, byte by byte")


@rule(
    "DM-OUTCOME", DESIGN, "reject",
    "A trial that was measured has points, all of which ran if it had no failures; one that was "
    "not has none, and a reason.",
    AGAIN,
)  # fmt: skip
def outcome_is_that_of_its_points(evidence: Evidence) -> Iterator[Seen]:
    """Look for outcomes that the points contradict."""
    for trial in evidence.readable:
        outcome, points = trial.record["outcome"], trial.record["points"]
        if outcome not in MEASURED:
            if points:
                yield Seen(trial.where, f"{outcome!r}, with {len(points)} points")
            elif not trial.record["reason"].strip():
                yield Seen(trial.where, f"{outcome!r}, without a reason")
            continue
        if not points:
            yield Seen(trial.where, f"{outcome!r}, without a point")
        failed = any(point["server_state"] != "ran" for point in trial.points)
        if trial.points and failed != (outcome == MEASURED[1]):
            yield Seen(trial.where, f"{outcome!r}, where {'a' if failed else 'no'} server failed")


@rule(
    "DM-LOGS", DATA, "reject",
    "Each point, and each probe of a search, has the raw log that it names, its samples and what "
    "the server printed.",
    AGAIN,
)  # fmt: skip
def logs_are_there(evidence: Evidence) -> Iterator[Seen]:
    """Look for raw logs that are gone, and for some of nobody."""
    for trial in evidence.loaded:
        names = {load["log"] for point, *_ in trial.offers for load in plan.loads(point)}
        searched = [SAMPLES_CSV] if trial.probes else []
        for name in sorted({*names, *searched, "samples.csv", "server.log"}):
            if not (trial.folder / name).is_file():
                yield Seen(trial.where, f"{name} is gone")
        # Beside `wsload-200.txt` lie `wsload-200.parquet` and `wsload-200.connections.parquet`.
        begins = tuple(f"{name.rpartition('.')[0]}." for name in names)
        for file in sorted(path for path in trial.folder.iterdir() if path.is_file()):
            known = file.name in names | BESIDE or file.name.startswith(begins)
            if not known and file.name.startswith((f"{trial.spec['client']}-", "probe-")):
                yield Seen(trial.where, f"{file.name} is of no point")


@rule(
    "DM-WHOLE", DATA, "reject",
    "The report of a load generator that ended well is whole.", AGAIN,
)  # fmt: skip
def reports_are_whole(evidence: Evidence) -> Iterator[Seen]:
    """Look for truncated reports."""
    for trial in evidence.loaded:
        generator = registry.generator(trial.spec["client"])
        for point, duration_s, _ in trial.offers:
            for load in plan.loads(point):
                if load["client_state"] != ENDED_WELL or not (trial.folder / load["log"]).is_file():
                    continue
                try:
                    report = generator.read(trial.folder / load["log"])
                    generator.parse(report, duration_s)
                except Truncated as error:
                    yield Seen(trial.where, f"{load['log']}: {error}")
                except Exception as error:
                    # Whatever a damaged file makes a parser raise.
                    yield Seen(trial.where, f"{load['log']}: {type(error).__name__}: {error}")


@rule(
    "DM-RAW", DATA, "reject",
    "Raw logs are there and can be read, so that each table can be made again.",
    "put the raw logs back: folders of trials, or the experiment's raw.tar.xz",
)  # fmt: skip
def raw_logs_can_be_read(evidence: Evidence) -> Iterator[Seen | Unknown]:
    """Look for what cannot be made again."""
    for name in sorted(evidence.unpacked):
        yield Unknown(f"{evidence.named}/{name}", "no raw logs: nothing could be recomputed")
    for trial in evidence.trials:
        if trial.damaged:
            yield Seen(trial.where, f"its rows cannot be made again: {trial.damaged}")


@rule(
    "DM-SAMPLES", DATA, "reject",
    "The kernel was sampled in time order, before, during and after each rate that was offered.",
    AGAIN,
)  # fmt: skip
def samples_cover_the_points(evidence: Evidence) -> Iterator[Seen]:
    """Look for samples that are missing or out of order."""
    for trial in evidence.loaded:
        if trial.damaged:
            continue
        if not trial.samples["time_us"].is_sorted():
            yield Seen(trial.where, "samples.csv: times go back")
        seen = trial.samples["offered_rate_rps"].value_counts()
        counts = dict(seen.iter_rows())
        for point in trial.points:
            if counts.get(point["offered_rate_rps"], 0) < 2:
                yield Seen(trial.where, f"fewer than two samples at {_rate(point)}")


def _rate(point: dict) -> str:
    return f"{point['offered_rate_rps']} req/s"


def _began(trial: Measured) -> list[int]:
    return [point["began_us"] for point in trial.points if "began_us" in point]


@rule(
    "DM-TIMES", DATA, "reject",
    "A trial took as long as its rates were to be offered, and no rate began before the last one "
    "had been offered for its time.",
    AGAIN,
)  # fmt: skip
def times_add_up(evidence: Evidence) -> Iterator[Seen]:
    """Look for durations that contradict each other."""
    for trial in evidence.loaded:
        duration_us = trial.spec["duration_s"] * 1e6
        began = _began(trial)
        for earlier, later, point in zip(began, began[1:], trial.points):
            ran = point["server_state"] == "ran"
            if later < earlier or (ran and later - earlier < 0.95 * duration_us):
                yield Seen(trial.where, f"the rate after {_rate(point)} began too early")
        offering, wall = trial.record.get("offering_us"), trial.record.get("wall_us")
        all_ran = all(point["server_state"] == "ran" for point in trial.points)
        least_us = 0.95 * duration_us * len(trial.points) if all_ran else 0
        if None not in (offering, wall) and not least_us <= offering <= wall:
            yield Seen(trial.where, f"load was offered for {offering} us of {wall} us")


RULES = (
    is_json, has_its_keys, is_in_its_place, is_there_once, outcome_is_that_of_its_points,
    logs_are_there, reports_are_whole, raw_logs_can_be_read, samples_cover_the_points, times_add_up,
)  # fmt: skip
