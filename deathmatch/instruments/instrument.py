"""What the instruments share: `deathmatch KIND NAME` measures and writes data/KIND/NAME.json.

A record holds what the machine is and a row for each reading. Each reading is taken in a sandbox of
its own, by the same command with `--inside FILE`, to which it writes.
"""

import argparse
import contextlib
import dataclasses
import datetime
import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from deathmatch.builds import clients, server_build
from deathmatch.builds.clone import Clone, on
from deathmatch.errors import UserError
from deathmatch.hosts import netns_testbed, sandbox
from deathmatch.hosts.host import Local
from deathmatch.hosts.testbed import Testbed
from deathmatch.measure import machine
from deathmatch.plan import files
from deathmatch.plan.root import ROOT

DATA = ROOT / "data"
BUILD = ROOT / "build"
LIMITS = ("fs.file-max", "fs.nr_open", "net.ipv4.tcp_mem")


def check_name(name: str) -> None:
    """Raise UserError for a name that is no file's."""
    if not re.fullmatch(r"[\w.-]*\w", name):
        raise UserError(f"{name!r} is no name of a file", remedy="use letters, digits, - and _")


def check_least(given: argparse.Namespace, **least: int) -> None:
    """Raise UserError for an option of these that is less than it may be."""
    for name, lowest in least.items():
        if getattr(given, name) < lowest:
            option = "--" + name.removesuffix("_s")
            raise UserError(f"it must be {lowest} or more", option, "give a larger number")


def keep(kind: str, name: str, about: dict, readings: Iterable[dict]) -> None:
    """Take the readings and write the record; what came before one that failed is kept."""
    record: dict = {"about": about, "readings": []}
    try:
        for found in readings:
            record["readings"].append(found)
    finally:
        if record["readings"]:
            _write(DATA / kind / f"{name}.json", record)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Yield a folder for what readings write; it ends with the block."""
    # Not in /tmp, which may be a folder of /run: the sandbox has one of its own.
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as made:
        yield Path(made)


def inside(kind: str, words: Iterable[str], file: Path) -> int:
    """Run `deathmatch KIND WORDS --inside FILE` in a sandbox; return its exit status."""
    command = [sys.executable, "-m", "deathmatch", kind, *words, "--inside", str(file)]
    return sandbox.run(command)


def take_each(kind: str, planned: Sequence[Any], words: Sequence[str]) -> Iterator[dict]:
    """Take each reading, a dataclass, in a sandbox, which is told it in place of the name.

    Yields its fields with what was found; UserError if one fails.
    """
    with folder() as made:
        for number, one in enumerate(planned, 1):
            file, asked = made / f"{number}.json", dataclasses.asdict(one)
            status = inside(kind, [json.dumps(asked), *words], file)
            if status != 0:
                raise UserError(f"it could not be measured (exit status {status})", str(one))
            print(f"  {number} of {len(planned)}: {one}", flush=True)
            yield asked | json.loads(file.read_text())


def drawn(each: Callable[[int], Sequence[Any]], repetitions: int) -> Iterator[Any]:
    """Return the readings of every repetition, each one's in an order that is drawn for it."""
    for repetition in range(1, repetitions + 1):
        readings = each(repetition)
        yield from random.Random(repetition).sample(readings, len(readings))


def measure(
    kind: str, given: argparse.Namespace, planned: Sequence[Any], server: str, experiment: str,
    around_s: float,
) -> int:  # fmt: skip
    """Take the readings of one server, each for `duration_s`, and keep them; return the status.

    `around_s` is what a reading takes beside its load.
    """
    version = built(kind, server, experiment)
    expected_s = len(planned) * (given.duration_s + around_s)
    print(f"{len(planned)} readings: {expected_s / 60:.0f} min or more", flush=True)
    told = about() | {"duration_s": given.duration_s, "version": version}
    words = ["--duration", str(given.duration_s)]
    keep(kind, given.name, told, take_each(kind, planned, words))
    return 0


def built(kind: str, server: str, experiment: str) -> str:
    """Return the version of a server; UserError if it or the experiment's client is not built."""
    found = server_build.built(files.server(server))
    if not found["ok"]:
        raise UserError(f"server {server!r} is not built", found["log"])
    Clone().clients(clients.needed(experiment), f"`deathmatch {kind}`")
    return found["version"]


def take(
    inside: Path, reading: Callable[[Testbed, Path], dict], testbed: str, sysctl: dict
) -> None:
    """Take a reading on namespaces of its own, in the sandbox, and write it to `inside`."""
    bed = netns_testbed.build(files.testbed(testbed), sysctl, on)
    out = inside.with_suffix("")
    out.mkdir()
    try:
        found = reading(bed, out)
    finally:
        bed.end()
    inside.write_text(json.dumps(found))


def about() -> dict:
    """Return the machine, its limits and the date, for the record."""
    told = {k: v for k, v in machine.about(Local(), Clone()).items() if k != "snakemake"}
    return told | {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "limits": {name: sysctl(name) for name in LIMITS},
    }


def sysctl(name: str) -> str:
    """Return a setting's value, empty where it is not to be seen."""
    try:
        return " ".join(Path("/proc/sys", *name.split(".")).read_text().split())
    except FileNotFoundError:
        return ""


def text(record: dict) -> str:
    """Return the record as JSON with a line for each reading, so that two can be compared."""
    lines = ",\n".join(f"  {json.dumps(one)}" for one in record["readings"])
    return f'{{\n"about": {json.dumps(record["about"], indent=1)},\n"readings": [\n{lines}\n]\n}}\n'


def _write(out: Path, record: dict) -> None:
    """Write the record aside, then give it its name, which it says."""
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = out.with_name(f".{out.name}.part")
    aside.write_text(text(record))
    aside.replace(out)
    print(out.relative_to(ROOT))
