"""What is fuzzed: how an input is made, and what must hold of whatever comes of it.

A check returns if the input gave a sound value or the project's own error, which says what is wrong
and where; whatever else it raises is a fault.
"""

import contextlib
import functools
import io
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import yaml
from conftest import ROOT
from fuzz.mutations import TEXTS, text
from fuzz.samples import ROUNDTRIP, SUMMARY, TIMES
from hypothesis import strategies as st

from deathmatch.agent import diag, kernel, wire
from deathmatch.analysis import published
from deathmatch.cli import main as command_line
from deathmatch.cli.commands import COMMANDS
from deathmatch.data import kernel_samples, records, tables, tidy
from deathmatch.errors import Truncated, UserError
from deathmatch.load import httperf, registry, roundtrip, wsload
from deathmatch.measure import server_process
from deathmatch.plan import files, validation_errors
from deathmatch.plan.paths import PLACES
from deathmatch.run import cli_config

TRIAL = next((ROOT / "tests" / "data" / "yucan").glob("*/1"))
Check = Callable[[Any], None]


@dataclass(frozen=True)
class Target:
    """`share`: of how many inputs of a fast one it gets one, being slow."""

    name: str
    inputs: st.SearchStrategy
    check: Check
    share: int = 1


def told(error: UserError) -> None:
    """The error says what is wrong, in one paragraph, and where."""
    assert error.what.strip() and error.where.strip(), repr(error)
    # What it quotes of a huge input is not all of it.
    assert len(str(error)) < 20_000, f"a message of {len(str(error))} characters"


def sound(fields: Mapping[str, Any], columns: Mapping[str, Any]) -> None:
    """Every number is one that a table holds: none is negative, undefined or endless."""
    frame = pl.DataFrame([fields], schema=columns)
    for name, value in fields.items():
        if isinstance(value, int | float):
            assert math.isfinite(value) and value >= 0, f"{name} = {value}"
            assert frame[name][0] == value, f"{name}: {value} became {frame[name][0]}"


def report(load: Any, made: Callable[[bytes], Any]) -> Check:
    """A report is whole and sound, or Truncated; what it counted is in its histogram."""

    def check(content: bytes) -> None:
        one = made(content)
        try:
            fields = load.parse(one, 1)
        except Truncated as error:
            assert str(error)
            return
        sound(fields, load.columns | {roundtrip.LEAST_LAG: pl.Int64})
        bins = load.histogram(one)
        assert (bins["count"] >= 0).all() and (bins["time_us"] >= 0).all()
        assert (load.seconds(one)["count"] >= 0).all()

    return check


def decoded(content: bytes) -> tuple[str]:
    return (content.decode(errors="replace"),)


@contextlib.contextmanager
def planted(content: bytes, name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, name)
        file.write_bytes(content)
        yield file


def samples_csv(content: bytes) -> None:
    with planted(content, "samples.csv") as file:
        try:
            frame = kernel_samples.read(file)
        except UserError as error:
            return told(error)
    assert frame.schema == pl.Schema(kernel_samples.SCHEMA)
    for column in frame:
        assert (column.drop_nulls() >= 0).all() and column.drop_nulls().is_finite().all()
    assert len(frame) == content.count(b"\n") - 1


@functools.cache
def trial_copy() -> Path:
    """Return a trial's folder, whose record is planted anew for each input."""
    # Kept until the process ends.
    made = tempfile.TemporaryDirectory()
    trial_copy.kept = made
    folder = Path(made.name, *TRIAL.parts[-3:])
    folder.mkdir(parents=True)
    for file in TRIAL.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def trial_json(content: bytes) -> None:
    """A record gives rows that fit the tables, or is refused with its name."""
    file = trial_copy() / "trial.json"
    file.write_bytes(content)
    try:
        found = records.read(file)
        made = tidy.tidy(file)
    except UserError as error:
        return told(error)
    for table, rows in made.items():
        frame = pl.DataFrame(rows, tables.columns(found["experiment"], table), orient="row")
        tables.check(frame, found["experiment"], table, "here")


def settings_file(kind: str) -> Check:
    """A file of settings gives a spec that is read back the same, or a mistake with its key."""

    def check(content: bytes) -> None:
        shown = PLACES[kind].format("mine")
        try:
            value = validation_errors.parse(content, shown)
            spec = validation_errors.validated(files.MODELS[kind], value, shown, name="mine")
            if kind == "server":
                files._check_server(spec, ROOT)
        except UserError as error:
            assert error.where.startswith(shown)
            return told(error)
        again = files.MODELS[kind].model_validate(
            value if kind == "testbed" else spec.model_dump(exclude_unset=True),
            context={"name": "mine"},
        )
        assert again == spec

    return check


def read_by(read: Callable[[Path], Any]) -> Check:
    """A file gives what its reader returns, or a mistake that says where."""

    def check(content: bytes) -> None:
        with planted(content, "mine.toml") as file:
            try:
                read(file)
            except UserError as error:
                told(error)

    return check


def claims(file: Path) -> None:
    for claim in published.claims(file):
        assert claim.compared("then") and claim.compared("now")


def agent_line(content: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(wire.message(content), dict)


def netlink(content: bytes) -> None:
    try:
        sockets, _ = diag.parsed(content)
        for family in (2, 10):
            for data in sockets:
                one = diag.listener(family, data)
                assert one.waiting >= 0 and one.limit >= 0
    except OSError as error:
        assert error.errno


def counters(content: bytes) -> None:
    with contextlib.suppress(ValueError):
        found = kernel.parse(content.decode(errors="replace"))
        assert all(isinstance(value, int) for value in found.values())


def strace(content: bytes) -> None:
    found = server_process.parse_strace(content.decode(errors="replace"))
    assert all(times >= 0 for times in found.values())


def config_yaml(content: bytes) -> None:
    with planted(content, "config.yaml") as file:
        try:
            cli_config.check_file(file)
            value = yaml.safe_load(content)
            cli_config.study(cli_config.settings(value))
        except UserError as error:
            told(error)


def command(given: list[str]) -> None:
    """Words are understood, or refused with the command's usage; nothing is run."""
    name, *rest = given
    try:
        if name not in COMMANDS:
            command_line.main(given)
            return
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            command_line.parser(name, COMMANDS[name]).parse_args(rest)
    except UserError as error:
        assert error.what and error.remedy
    except SystemExit as ended:
        assert ended.code in (0, 2) or str(ended.code).startswith("deathmatch")


NETLINK = [
    diag._HEADER.pack(16 + 72, 20, 2, 1, 0) + bytes([10, 10, 0, 0])
    + diag._IDENTITY.pack(8080, 0, b"\x7f\0\0\1", b"", b"") + diag._QUEUES.pack(0, 3, 128),
    diag._HEADER.pack(20, 3, 2, 1, 0) + bytes(4), diag._HEADER.pack(36, 2, 0, 1, 0) + b"\xfe" * 20,
]  # fmt: skip
PROC = [Path("/proc/self/net", name).read_bytes() for name in kernel.COUNTED]
REPORTS = [file.read_bytes() for file in sorted(TRIAL.glob("httperf-*.txt"))]

WORDS = [*COMMANDS, "--dataset", "--servers=yaws", "quick", "null", "--help", "--json", "--testbed"]


def seeds(pattern: str) -> list[bytes]:
    """Return the project's files of a pattern."""
    return [path.read_bytes() for path in sorted(ROOT.glob(pattern))]


TARGETS = [
    Target("httperf", text(*REPORTS), report(httperf.GENERATOR, decoded)),
    Target("roundtrip", text(*ROUNDTRIP), report(roundtrip.GENERATOR, decoded)),
    Target(
        "wsload", text(SUMMARY),
        report(wsload.GENERATOR, lambda content: wsload.Report(decoded(content), TIMES)), 4,
    ),
    Target("samples", text((TRIAL / "samples.csv").read_bytes()), samples_csv, 20),
    Target("trial", text((TRIAL / "trial.json").read_bytes()), trial_json, 10),
    *(
        Target(kind, text(*seeds(PLACES[kind].format("*"))), settings_file(kind), 4)
        for kind in files.MODELS
    ),
    Target("claims", text(*seeds("data/published/claims.toml")), read_by(claims), 100),
    Target(
        "client", text(*seeds("clients/*/client.toml")),
        read_by(functools.partial(registry.read, "mine")),
    ),
    Target("agent", text(wire.line({"id": 1, "verb": "run", "words": ["a"]})), agent_line),
    Target("netlink", text(*NETLINK, b"".join(NETLINK)), netlink),
    Target("counters", text(*PROC), counters),
    Target("strace", text(b"  time calls\n  12 read\n 4 write\n----\n 16 total\n"), strace),
    Target("config", text(*seeds("config/config.yaml")), config_yaml, 20),
    Target(
        "command", st.lists(st.sampled_from(WORDS + TEXTS), min_size=1, max_size=4), command, 4
    ),
]  # fmt: skip
