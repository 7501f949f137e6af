"""When each of Snakemake's jobs began and ended, and how long the set-up took: files in `build/`.

For `bench/shares.py`. Snakemake's own metadata has the time of an output, not that of its job.
"""

import csv
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

JOBS = Path("build/job-times.csv")
# `./shell` writes it: seconds, a tab and the step.
SET_UP = Path("build/setup-times.tsv")


@dataclass(frozen=True)
class JobTime:
    """When a job began and ended, in seconds since 1970."""

    dataset: str
    rule: str
    output: str
    began_s: float
    ended_s: float


def add(job: JobTime, root: Path = Path()) -> None:
    """Append a job to the file."""
    file = root / JOBS
    file.parent.mkdir(exist_ok=True)
    new = not file.exists()
    with file.open("a", newline="") as rows:
        writer = csv.writer(rows)
        if new:
            writer.writerow(field.name for field in fields(JobTime))
        writer.writerow(astuple(job))


def read(root: Path = Path()) -> list[JobTime]:
    """Return the jobs of all runs in the order of their ends; none if nothing ran yet."""
    try:
        with (root / JOBS).open(newline="") as rows:
            return [_job(row) for row in csv.DictReader(rows)]
    except FileNotFoundError:
        return []


def _job(row: dict[str, str]) -> JobTime:
    times = {name: float(row[name]) for name in ("began_s", "ended_s")}
    return JobTime(**row | times)


def set_up_s(root: Path = Path()) -> float:
    """Return the seconds that the steps of the set-up took; 0 if none is known."""
    return sum(seconds for seconds, _ in _set_up(root / SET_UP))


def _set_up(file: Path) -> Iterator[tuple[float, str]]:
    if file.exists():
        for line in file.read_text().splitlines():
            seconds, _, step = line.partition("\t")
            yield float(seconds), step
