#!/usr/bin/env python3
"""Print how a dataset's run spent its time, from its records: `bench/README.md`.

./shell python bench/shares.py quick
"""

import argparse
import csv
import datetime as dt
import json
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deathmatch.data import archive, inventory  # noqa: E402
from deathmatch.plan.record import BEFORE_WALL  # noqa: E402
from deathmatch.run.state import JOBS, JobTime  # noqa: E402

# After a longer gap between two trials, the run had been stopped.
PAUSE_S = 60
WARM_UP = ("warm_up", "churn")
DRAIN, REST = "drain", "check_for_rest"
BUILD = "build"
# Written by `./shell`: seconds, a tab and the step.
SET_UP = Path("build/setup-times.tsv")


@dataclass(frozen=True)
class Spent:
    """The seconds of a trial by kind; `other` has the remaining ones by step."""

    experiment: str
    began: dt.datetime
    planned_s: float
    drain_s: float
    warm_up_s: float
    rest_s: float
    other: Mapping[str, float]
    # From the first step to the last, and before the first one.
    wall_s: float
    before_s: float

    @property
    def ended(self) -> dt.datetime:
        """When its last step ended."""
        return self.began + dt.timedelta(seconds=self.wall_s)


def spent(record: Mapping) -> Spent:
    """Return how a trial spent its time, by its record.

    In an older record, without `steps_us`, the time before the first rate counts as warm-up, and
    all other steps as `unknown`.
    """
    steps_us = record.get("steps_us") or {}
    offering_us, wall_us = record.get("offering_us") or 0, record.get("wall_us") or 0
    planned_us = min(_planned_us(record), offering_us)
    drain_us = offering_us - planned_us + steps_us.get(DRAIN, 0)
    rest_us = steps_us.get(REST, 0)
    if steps_us:
        warm_up_us = sum(steps_us.get(step, 0) for step in WARM_UP)
        known = {*WARM_UP, DRAIN, REST, "offering"}
        other = {step: us / 1e6 for step, us in steps_us.items() if step not in known}
    else:
        warm_up_us = next((point.get("began_us", 0) for point in record["points"]), 0)
        left_us = max(0, wall_us - planned_us - drain_us - warm_up_us)
        other = {"unknown": left_us / 1e6}
    return Spent(
        experiment=record["experiment"],
        began=dt.datetime.fromisoformat(record["started_at"]),
        planned_s=planned_us / 1e6,
        drain_s=drain_us / 1e6,
        warm_up_s=warm_up_us / 1e6,
        rest_s=rest_us / 1e6,
        other=other,
        wall_s=wall_us / 1e6,
        before_s=steps_us.get(BEFORE_WALL, 0) / 1e6,
    )


def _planned_us(record: Mapping) -> float:
    """Return the planned time of load; without load, the time of measuring."""
    duration_s = record["spec"].get("duration_s")
    if duration_s is None:
        return record.get("offering_us") or 0
    probes = (record.get("search") or {}).get("probes", [])
    return 1e6 * (duration_s * len(record["points"]) + sum(probe["duration_s"] for probe in probes))


def between(trials: Iterable[Spent]) -> tuple[float, float]:
    """Return the seconds between trials, and those of pauses of more than PAUSE_S.

    Records have their start in whole seconds: the sum over a run is exact to a second.
    """
    gaps_s = [
        (later.began - earlier.ended).total_seconds() - later.before_s
        for earlier, later in pairwise(sorted(trials, key=lambda trial: trial.began))
    ]
    short_s = sum(gap_s for gap_s in gaps_s if gap_s <= PAUSE_S)
    return max(0, short_s), sum(gap_s for gap_s in gaps_s if gap_s > PAUSE_S)


def job_times(root: Path) -> list[JobTime]:
    """Return the jobs of all runs in the order of their ends."""
    try:
        with (root / JOBS).open(newline="") as rows:
            return [
                JobTime(**row | {name: float(row[name]) for name in ("began_s", "ended_s")})
                for row in csv.DictReader(rows)
            ]
    except FileNotFoundError:
        return []


def set_up_s_of(root: Path) -> float:
    """Return the seconds of the set-up; 0 if they are unknown."""
    file = root / SET_UP
    lines = file.read_text().splitlines() if file.exists() else []
    return sum(float(line.partition("\t")[0]) for line in lines)


def covered_s(jobs: Iterable[JobTime]) -> float:
    """Return the seconds in which at least one of the jobs ran."""
    total_s, until_s = 0.0, 0.0
    for job in sorted(jobs, key=lambda job: job.began_s):
        total_s += max(0.0, job.ended_s - max(job.began_s, until_s))
        until_s = max(until_s, job.ended_s)
    return total_s


def by_kind(trials: Sequence[Spent], jobs: Sequence[JobTime], set_up_s: float) -> dict[str, float]:
    """Return the seconds of a run by kind."""
    between_s, _ = between(trials)
    after = [job for job in jobs if job.rule not in ("trial", BUILD)]
    return {
        "planned load": sum(trial.planned_s for trial in trials),
        "drain and late replies": sum(trial.drain_s for trial in trials),
        "warm-up": sum(trial.warm_up_s for trial in trials),
        "check for rest": sum(trial.rest_s for trial in trials),
        "other inside trials": sum(sum(trial.other.values()) for trial in trials),
        "between trials": between_s,
        "set-up": set_up_s,
        "builds": covered_s(job for job in jobs if job.rule == BUILD),
        "tables and paper": covered_s(after),
    }


def table(seconds: Mapping[str, float]) -> str:
    """Return lines with the seconds of each kind and their share, and the sum."""
    total_s = sum(seconds.values())
    rows = [*seconds.items(), ("all", total_s)]
    return "\n".join(
        f"{name:24}{value_s:10.1f} s{value_s / total_s if total_s else 0:8.1%}"
        for name, value_s in rows
    )


def steps_table(trials: Sequence[Spent]) -> str:
    """Return lines with the seconds of other steps for each trial of an experiment."""
    grouped: dict[str, list[Spent]] = defaultdict(list)
    for trial in trials:
        grouped[trial.experiment].append(trial)
    lines = []
    for experiment, own in sorted(grouped.items()):
        total_s: dict[str, float] = defaultdict(float)
        for trial in own:
            for step, value_s in trial.other.items():
                total_s[step] += value_s / len(own)
        lines.append(f"{experiment}, {len(own)} trials: {sum(total_s.values()):.2f} s each")
        ranked = sorted(total_s.items(), key=lambda item: -item[1])
        lines += [
            f"    {step.replace('_', ' '):22}{value_s:8.2f}"
            for step, value_s in ranked
            if value_s >= 0.005
        ]
    return "\n".join(lines)


def records(folder: Path) -> list[dict]:
    """Return the records of a dataset's trials, from its folders or its archives."""
    files = inventory.recorded(folder)
    if files:
        return [json.loads(file.read_text()) for file in files]
    found = []
    for packed in sorted(folder.glob(f"*/{archive.NAME}")):
        with tarfile.open(packed) as members:
            found += [
                json.load(members.extractfile(member))
                for member in members
                if member.name.endswith(f"/{inventory.RECORD}")
            ]
    return found


def main() -> int:
    """Print the shares of the dataset named on the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", help="a folder in data/")
    dataset = parser.parse_args().dataset
    trials = [spent(record) for record in records(ROOT / "data" / dataset)]
    if not trials:
        parser.error(f"data/{dataset} has no trial.json and no {archive.NAME}: measure it first")
    jobs = [job for job in job_times(ROOT) if job.dataset == dataset]
    set_up_s = set_up_s_of(ROOT)
    print(table(by_kind(trials, jobs, set_up_s)))
    if pauses_s := between(trials)[1]:
        print(f"not counted: {pauses_s:.0f} s between runs, in gaps of more than {PAUSE_S} s")
    if not jobs:
        print(f"no job of this dataset is in {JOBS}: builds and paper are unknown")
    if not set_up_s:
        print(f"{SET_UP} is not there: set-up is unknown")
    print(f"\nother inside trials, seconds for each trial\n{steps_table(trials)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
