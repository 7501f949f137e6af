"""What the instruments share: `deathmatch KIND NAME` measures and writes data/KIND/NAME.json.

A record holds what the machine is and a row for each reading. Each reading is taken in a sandbox of
its own, by the same command with `--inside FILE`, to which it writes.
"""

import contextlib
import datetime
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts import sandbox
from deathmatch.hosts.host import Local
from deathmatch.hosts.site import Here
from deathmatch.measure import machine
from deathmatch.plan.root import ROOT

DATA = ROOT / "data"
BUILD = ROOT / "build"
LIMITS = ("fs.file-max", "fs.nr_open", "net.ipv4.tcp_mem")


def check_name(name: str) -> None:
    """Raise UserError for a name that is no file's."""
    if not re.fullmatch(r"[\w.-]*\w", name):
        raise UserError(f"{name!r} is no name of a file", remedy="use letters, digits, - and _")


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


def about() -> dict:
    """Return the machine, its limits and the date, for the record."""
    told = {k: v for k, v in machine.about(Local(), Here()).items() if k != "snakemake"}
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
