"""A side instrument: `deathmatch KIND NAME` measures one server and writes data/KIND/NAME.json.

A record holds what the machine is, and a row for each reading. A reading starts the server, offers
it one load and stops it, in a sandbox of its own.
"""

import argparse
import contextlib
import dataclasses
import datetime
import json
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deathmatch.builds import clients, server_build
from deathmatch.builds.clone import Clone, on
from deathmatch.errors import UserError
from deathmatch.hosts import hardware, netns_testbed, sandbox
from deathmatch.measure import machine, steps
from deathmatch.measure.context import Context, prepare
from deathmatch.plan import files
from deathmatch.plan.paths import ROOT
from deathmatch.plan.spec import Level
from deathmatch.plan.trial import Trial

DATA = ROOT / "data"
# A sandbox has a /tmp of its own, so what readings write is here.
BUILD = ROOT / "build"
# The testbed and the dataset that have every server.
TESTBED, DATASET = "netns", "tour"
_ROW = "row.json"

Row = dict[str, Any]
"""What a reading found, ready for JSON."""


@dataclass(frozen=True)
class Instrument:
    """What one kind of record needs.

    `around_s` is how long a reading takes besides its load. `readings` returns frozen dataclasses,
    whose text names them in progress and errors, and raises UserError for options that make no
    sense. `take` returns a reading's row; it is called in the sandbox, with a folder for files.
    """

    kind: str
    experiment: str
    server: str
    around_s: float
    readings: Callable[[argparse.Namespace], Sequence[Any]]
    take: Callable[[Any, argparse.Namespace, Path], Row]

    def main(self, options: argparse.Namespace) -> int:
        """Measure as the command line says; return the exit status."""
        if not re.fullmatch(r"[\w.-]*\w", options.name):
            what = f"{options.name!r} cannot be a file's name"
            raise UserError(what, remedy="use letters, digits, - and _")
        duration_s = options.duration_s
        for option, value in (("--repetitions", options.repetitions), ("--duration", duration_s)):
            if value < 1:
                raise UserError("it must be 1 or more", option, "give a larger number")
        planned = drawn(self.readings(options), options.repetitions)
        version = built(f"`deathmatch {self.kind}`", self.server, self.experiment)
        expected_min = len(planned) * (duration_s + self.around_s) / 60
        print(f"{len(planned)} readings: {expected_min:.1f} min or more", flush=True)
        self._measure(planned, options, {"duration_s": duration_s, "version": version})
        return 0

    def _measure(self, planned: Sequence[Any], options: argparse.Namespace, how: Row) -> None:
        """Take the readings and write the record; those before a failure are kept."""
        record: dict = {"about": about() | how, "readings": []}
        BUILD.mkdir(exist_ok=True)
        try:
            with tempfile.TemporaryDirectory(dir=BUILD) as folder:
                for number, reading in enumerate(planned, 1):
                    row = self._in_sandbox(reading, options, Path(folder))
                    record["readings"].append(dataclasses.asdict(reading) | row)
                    print(f"  {number} of {len(planned)}: {reading}", flush=True)
        finally:
            if record["readings"]:
                _write(DATA / self.kind / f"{options.name}.json", record)

    def _in_sandbox(self, reading: Any, options: argparse.Namespace, folder: Path) -> Row:
        out = Path(tempfile.mkdtemp(dir=folder))

        def inside() -> None:
            (out / _ROW).write_text(json.dumps(self.take(reading, options, out)))

        status = sandbox.call(inside)
        if status != 0:
            raise UserError(f"the measurement failed (exit status {status})", str(reading))
        return json.loads((out / _ROW).read_text())


def drawn(readings: Sequence[Any], repetitions: int) -> list[Any]:
    """Return the readings of every repetition, each repetition's in an order drawn for it."""
    return [
        dataclasses.replace(reading, repetition=repetition)
        for repetition in range(1, repetitions + 1)
        for reading in random.Random(repetition).sample(readings, len(readings))
    ]


def about() -> Row:
    """Return the machine and the date, for the record."""
    described = machine.about(hardware.read, Clone())
    del described["snakemake"]
    return described | {"date": datetime.datetime.now(datetime.UTC).date().isoformat()}


def _write(path: Path, record: dict) -> None:
    """Write the record with a line for each row, so that two can be compared; print its name."""
    lines = ",\n".join(f"  {json.dumps(row)}" for row in record["readings"])
    machine_lines = json.dumps(record["about"], indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_path = path.with_name(f".{path.name}.part")
    partial_path.write_text(f'{{\n"about": {machine_lines},\n"readings": [\n{lines}\n]\n}}\n')
    partial_path.replace(path)
    print(path.relative_to(ROOT))


def built(wanted_by: str, server: str, experiment: str) -> str:
    """Return the version of a server; UserError if it or the experiment's client is not built."""
    record = server_build.built(files.server(server))
    if not record["ok"]:
        raise UserError(f"server {server!r} is not built", record["log"])
    Clone().clients(clients.needed(experiment), wanted_by)
    return record["version"]


@contextlib.contextmanager
def serving(
    trial: Trial, out: Path, values: Mapping[str, Level] | None = None
) -> Iterator[Context]:
    """Yield a trial's server, started on namespaces of its own; both end with the block.

    `values` replace placeholders of the server's command. UserError if the server does not start.
    """
    bed = netns_testbed.build(files.testbed(TESTBED), trial.spec()["sysctl"], on)
    try:
        context = prepare(trial, trial.spec(), bed, out)
        context = replace(context, values=context.values | dict(values or {}))
        try:
            running, problem = steps.start_holding(context)
            if problem:
                what = f"server {trial.server.name!r} did not start: {problem}"
                raise UserError(f"{what}\n{running.tail()}")
            yield context
            steps.stop(context, running)
        finally:
            context.end()
    finally:
        bed.end()


def cpu_ns(context: Context) -> int:
    """Return the CPU time that the server's processes have used, those that ended included.

    UserError if nothing can count it.
    """
    cpus, group = context.cpus["server"], context.accounting.file
    used_ns = context.server.sample(cpus=cpus, group=group)["usage"]["cpu_ns"]
    if used_ns is None:
        raise UserError(
            f"server {context.trial.server.name!r} ignores the ends of its children, so that "
            "their CPU time is counted nowhere",
            remedy="run as root, so that a cgroup counts it",
        )
    return used_ns
