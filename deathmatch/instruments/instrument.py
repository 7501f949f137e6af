"""What the side instruments share: `deathmatch KIND NAME` measures and writes data/KIND/NAME.json.

A record holds what the machine is, and rows. Each reading is taken in a sandbox of its own.
"""

import argparse
import dataclasses
import datetime
import json
import random
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from deathmatch.builds.clone import Clone
from deathmatch.errors import UserError
from deathmatch.hosts import hardware, sandbox
from deathmatch.measure import machine
from deathmatch.plan.root import ROOT

DATA = ROOT / "data"
# A sandbox has a /tmp of its own, so what readings write is here.
BUILD = ROOT / "build"
LIMITS = ("fs.file-max", "fs.nr_open", "net.ipv4.tcp_mem")
_ROWS = "rows.json"

Row = dict[str, Any]
"""One row of a record, ready for JSON."""


@dataclass(frozen=True)
class Plan:
    """What will be measured.

    `readings` are frozen dataclasses, whose text names them in progress and errors. `what` says how
    many there are, `expected_s` how long they take on an idle machine; `about` is added to what the
    record says of the machine.
    """

    readings: Sequence[Any]
    what: str
    expected_s: float
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Instrument(ABC):
    """A side instrument, which measures one kind of record.

    `least` has options that are numbers, each with the least that it may be.
    """

    kind: str
    least: Mapping[str, int]

    @abstractmethod
    def plan(self, options: argparse.Namespace) -> Plan:
        """Return what will be measured; UserError for options that make no sense."""

    @abstractmethod
    def take(self, reading: Any, options: argparse.Namespace, out: Path) -> list[Row]:
        """Return the rows of a reading; called in the sandbox, `out` is a folder for files."""

    def observe(self, reading: Any, take: Callable[[], list[Row]]) -> list[Row]:
        """Return the rows that `take` returns, which takes a reading in its sandbox.

        What only the outside of the sandbox can see is added here.
        """
        return take()

    def main(self, options: argparse.Namespace) -> int:
        """Measure as the command line says; return the exit status."""
        if not re.fullmatch(r"[\w.-]*\w", options.name):
            what = f"{options.name!r} cannot be a file's name"
            raise UserError(what, remedy="use letters, digits, - and _")
        for name, least in {"repetitions": 1, **self.least}.items():
            if getattr(options, name) < least:
                option = "--" + name.removesuffix("_s")
                raise UserError(f"it must be {least} or more", option, "give a larger number")
        plan = self.plan(options)
        print(f"{plan.what}: {plan.expected_s / 60:.1f} min or more", flush=True)
        self._measure(plan, options)
        return 0

    def _measure(self, plan: Plan, options: argparse.Namespace) -> None:
        """Take the readings and write the record; those before a failure are kept."""
        record: dict = {"about": about() | plan.about, "readings": []}
        BUILD.mkdir(exist_ok=True)
        try:
            with tempfile.TemporaryDirectory(dir=BUILD) as folder:
                for number, reading in enumerate(plan.readings, 1):
                    take = partial(self._in_sandbox, reading, options, Path(folder))
                    asked = dataclasses.asdict(reading)
                    record["readings"] += [asked | row for row in self.observe(reading, take)]
                    print(f"  {number} of {len(plan.readings)}: {reading}", flush=True)
        finally:
            if record["readings"]:
                _write(DATA / self.kind / f"{options.name}.json", record)

    def _in_sandbox(self, reading: Any, options: argparse.Namespace, folder: Path) -> list[Row]:
        out = Path(tempfile.mkdtemp(dir=folder))

        def inside() -> None:
            (out / _ROWS).write_text(json.dumps(self.take(reading, options, out)))

        status = sandbox.call(inside)
        if status != 0:
            raise UserError(f"the measurement failed (exit status {status})", str(reading))
        return json.loads((out / _ROWS).read_text())


def load_plan(
    readings: Sequence[Any], duration_s: float, around_s: float, about: Mapping[str, Any],
    rate: str = "",
) -> Plan:  # fmt: skip
    """Return the plan of readings that offer load for `duration_s` and take `around_s` besides.

    `rate` is added to what is printed of them.
    """
    return Plan(
        readings, f"{len(readings)} readings{rate}", len(readings) * (duration_s + around_s),
        {"duration_s": duration_s} | about,
    )  # fmt: skip


def drawn(readings: Sequence[Any], repetitions: int) -> list[Any]:
    """Return the readings of every repetition, each repetition's in an order drawn for it."""
    return [
        dataclasses.replace(reading, repetition=repetition)
        for repetition in range(1, repetitions + 1)
        for reading in random.Random(repetition).sample(readings, len(readings))
    ]


def about() -> dict:
    """Return the machine, its limits and the date, for the record."""
    described = machine.about(hardware.read, Clone())
    del described["snakemake"]
    return described | {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "limits": {name: sysctl(name) for name in LIMITS},
    }


def sysctl(name: str) -> str:
    """Return a setting's value, empty where it is hidden."""
    try:
        return " ".join(Path("/proc/sys", *name.split(".")).read_text().split())
    except FileNotFoundError:
        return ""


def text(record: dict) -> str:
    """Return the record as JSON with a line for each row, so that two can be compared."""
    lines = ",\n".join(f"  {json.dumps(row)}" for row in record["readings"])
    return f'{{\n"about": {json.dumps(record["about"], indent=1)},\n"readings": [\n{lines}\n]\n}}\n'


def _write(path: Path, record: dict) -> None:
    """Write the record under another name, then rename it, and print its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_path = path.with_name(f".{path.name}.part")
    partial_path.write_text(text(record))
    partial_path.replace(path)
    print(path.relative_to(ROOT))
