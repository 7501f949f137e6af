"""Is a dataset fit to be shown beside others? `snakemake check_dataset --config dataset=NAME`.

Says what is wrong, and in which file: trials that are missing or of another specification,
records and tables that break their schema, toolchains or machines that are mixed, counters that
cannot be, names and places of somebody's machine.
"""

import argparse
import getpass
import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from deathmatch.data import records, tables
from deathmatch.errors import UserError
from deathmatch.hosts import node, toolchain
from deathmatch.plan import choice, files, matrix
from deathmatch.plan.choice import Choice
from deathmatch.plan.dataset import TABLES
from deathmatch.plan.root import ROOT

SHOWN = 5  # findings of one kind
SLACK_S = 60  # what draining, timeouts and samples may add to the time a rate is offered
# Names of machines and users that tell nothing.
COMMON = {"debian", "localhost", "nixos", "nobody", "root", "ubuntu", "user"}
HOMES = r"(?:/home/[\w.-]+|/root|/Users/[\w.-]+)/"

Finding = tuple[str, str]  # what, where


def main(given: argparse.Namespace) -> int:
    """Print what is wrong with the dataset named on the command line; return 1 if anything is."""
    dataset, chosen = given.dataset, choice.given(given)
    os.chdir(ROOT)
    found: dict[str, list[str]] = {}
    for what, where in findings(dataset, chosen):
        found.setdefault(what, []).append(where)
    for what, places in found.items():
        more = f"\n    and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
        shown = "\n    ".join(places[:SHOWN])
        print(f"deathmatch: data/{dataset}: {what}:\n    {shown}{more}", file=sys.stderr)
    if not found:
        part = "" if chosen.whole else f", as far as {' '.join(chosen.settings)} chooses,"
        print(f"data/{dataset}{part} is complete, of one toolchain and one machine, and plausible")
    return 1 if found else 0


def findings(dataset: str, chosen: Choice) -> Iterator[Finding]:
    """Return everything that is wrong with a dataset; UserError if there is no such dataset.

    What is not chosen may be missing; what is there of it is looked at all the same.
    """
    frozen = files.dataset(dataset).frozen
    folder = Path("data", dataset)
    paths = sorted(folder.glob("*/*/*/*/trial.json"))
    wanted = [] if frozen else chosen.trials(dataset)
    # Of a server that someone named there may be more than the dataset asks for.
    whole = [] if frozen else matrix.possible(dataset)
    planned = {trial.path / "trial.json": trial for trial in whole}
    for path in sorted({trial.path / "trial.json" for trial in wanted} - set(paths)):
        yield "trials are missing; run snakemake", str(path.parent)
    for path in sorted(set(paths) - planned.keys()) if planned else []:
        yield "trials that the dataset does not have; remove them", str(path.parent)
    found = {}
    for path in paths:
        try:
            found[path] = records.whole(path)
        except records.NotJson as error:
            yield "records that are no JSON", str(error)
        except UserError as error:
            yield "records that break their schema", str(error)
    for path in sorted(found.keys() & planned.keys()):
        if found[path]["spec"] != json.loads(planned[path].spec_text()):
            yield "trials measured from other sources or rates; run snakemake", str(path.parent)
    yield from _mixed(found)
    for experiment in chosen.experiments or files.names("experiment"):
        if (folder / experiment).is_dir():
            measured = sum(path.parts[2] == experiment for path in paths)
            yield from _tables(dataset, experiment, measured)
    yield from _private(folder)


def _mixed(records: dict[Path, dict]) -> Iterator[Finding]:
    for tool, places in toolchain.differences((str(p.parent), r) for p, r in records.items()):
        for identity, where in places.items():
            yield f"several toolchains: {tool} is not always the same", f"{identity}: {where}"
    for key, places in node.differences((str(p), r) for p, r in records.items()):
        for value, where in places.items():
            yield f"several machines: {key} is not always the same", f"{value}: {where}"


def _tables(dataset: str, experiment: str, trials: int) -> Iterator[Finding]:
    frames = {}
    for table in TABLES:
        try:
            frames[table] = tables.read(dataset, experiment, table)
        except UserError as error:
            yield "tables that are absent or break their schema", str(error)
        except (OSError, pl.exceptions.PolarsError) as error:
            where = tables.path_of(dataset, experiment, table).relative_to(ROOT)
            yield "tables that cannot be read", f"{where}: {str(error).splitlines()[0]}"
    if "trials" in frames and trials and len(frames["trials"]) != trials:
        where = f"data/{dataset}/{experiment}/trials.parquet"
        held = len(frames["trials"])
        where = f"{where}: {held} trials, where the folder has {trials}"
        yield "tables made from other trials; run snakemake", where
    if len(frames) == len(TABLES) and "offered_rate_rps" in frames["points"].columns:
        yield from _implausible(f"data/{dataset}/{experiment}", frames)


def _implausible(folder: str, frames: dict[str, pl.DataFrame]) -> Iterator[Finding]:
    key = ["server", "variant", "n"]
    points = frames["points"].join(frames["trials"].select(*key, "cpus"), on=key)
    answered = pl.col("server_state") == "ran"
    # A WebSocket message is the request of its echo.
    asked = pl.col("requests" if "requests" in points.columns else "messages_due")
    duration_s = pl.col("duration_us") / 1e6
    rules = {
        "more replies than requests": pl.col("replies") > asked,
        "counters that fall": pl.any_horizontal(pl.col(*tables.GROWING) < 0),
        "more overflows of the accept queue than drops": (
            pl.col("server_listen_overflows") > pl.col("server_listen_drops")
        ),
        "more CPU time than the machine has": (
            pl.col("server_cpu_ns") > 1e9 * pl.col("cpus") * (duration_s + SLACK_S)
        ),
        "no kernel counters of a server that ran": (
            answered & pl.col("server_passive_opens").is_null()
        ),
        "a load generator that did nothing": answered & (pl.col("report") == "whole")
        & (asked == 0),
    }  # fmt: skip
    for what, condition in rules.items():
        for row in points.filter(condition).iter_rows(named=True):
            where = f"{folder}/{row['server']}/{row['variant']}/{row['n']}"
            yield f"counters that cannot be: {what}", f"{where}, {row['offered_rate_rps']} req/s"
    queue = pl.col("accept_queue_connections") > pl.col("accept_queue_limit") + 1
    for row in frames["samples"].filter(queue).unique(key).iter_rows(named=True):
        where = f"{folder}/{row['server']}/{row['variant']}/{row['n']}"
        yield "counters that cannot be: an accept queue longer than its limit", where


def _private(folder: Path) -> Iterator[Finding]:
    """Return files that tell where or by whom they were made; binary tables are read as text."""
    names = {socket.gethostname(), getpass.getuser()} - COMMON
    words = [rf"\b{re.escape(name)}\b" for name in sorted(names) if len(name) > 3]
    pattern = re.compile("|".join([HOMES, re.escape(f"{ROOT}/"), *words]))
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if found := pattern.search(_text(path)):
            yield "names or places of somebody's machine; take them out", f"{path}: {found[0]}"


def _text(path: Path) -> str:
    if path.suffix != ".parquet":
        return path.read_text(errors="replace")
    try:
        frame = pl.read_parquet(path)
    except pl.exceptions.PolarsError:
        # That it cannot be read is told with its table.
        return ""
    return "\n".join(text for column in frame.select(pl.col(pl.String)) for text in
                     column.drop_nulls().unique().sort())  # fmt: skip
