"""Raw logs to tidy tables: `./shell deathmatch tidy data/<dataset>[/<experiment>]`.

It reads the `trial.json` and the logs of each measured trial and writes the tables that
`deathmatch.data.tables` describes. If no trial has a folder, it reads the archive.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from deathmatch.data import (
    archive,
    inventory,
    kernel_samples,
    laws,
    limits,
    offered_rate,
    probes,
    records,
    sittings,
    steadiness,
    tables,
)
from deathmatch.data.inventory import Inventory
from deathmatch.errors import UserError
from deathmatch.load import registry
from deathmatch.load.generator import Fields
from deathmatch.plan import files, paths, record
from deathmatch.plan.dataset import EVERY_TABLE
from deathmatch.plan.selection import Choice

# The system calls by which a program waits for descriptors.
WAITS = {
    "select", "pselect6", "poll", "ppoll", "epoll_wait", "epoll_pwait", "epoll_pwait2",
    "io_uring_enter",
}  # fmt: skip


def main(given: argparse.Namespace) -> int:
    """Write the tables of the dataset, or of its experiment, named on the command line."""
    folder = Path(given.folder)
    dataset, below = paths.split(folder)
    held = files.dataset(dataset).experiments if not below else {}
    folders = (
        [folder] if below else [path for path in sorted(folder.glob("*/")) if path.name in held]
    )
    if not any([written(dataset, path) for path in folders]):
        raise UserError("no trial is measured", str(folder), "run snakemake")
    return 0


def written(dataset: str, folder: Path) -> bool:
    """Write an experiment's tables into its folder; return whether it has trials or an archive."""
    experiment = folder.name
    packed = folder / archive.NAME
    with tempfile.TemporaryDirectory(prefix="deathmatch-") as aside:
        trials = _measured(dataset, experiment)
        if not trials and packed.is_file():
            archive.unpack(packed, Path(aside, experiment))
            trials = inventory.recorded(Path(aside), experiment)
        if not trials:
            return False
        made = frames(experiment, trials)
    for table in files.dataset(dataset).tables(experiment):
        tables.write(made[table], experiment, table, folder)
    return True


def frames(experiment: str, trials: Iterable[Path]) -> dict[str, pl.DataFrame]:
    """Return every table of an experiment, its points checked by the laws."""
    return framed(experiment, [tidy(path) for path in trials])


def framed(experiment: str, made: Sequence[dict[str, list[dict]]]) -> dict[str, pl.DataFrame]:
    """Return the tables from the rows that `tidy` returned, with the points checked by the laws."""
    frames_by_table = {
        table: pl.DataFrame(
            [row for trial in made for row in trial[table]],
            schema=tables.columns(experiment, table),
            orient="row",
        )
        for table in EVERY_TABLE
    }
    return frames_by_table | {"points": marked_points(experiment, frames_by_table)}


def marked_points(experiment: str, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return an experiment's points with the columns of `limits` and `laws`, by all its tables."""
    given = laws.evidence(experiment, frames)
    limited = limits.marked(given).drop(laws.MARKS, strict=False)
    return laws.marked(limited, laws.judgements(given))


def _measured(dataset: str, experiment: str) -> list[Path]:
    """Return the records of the dataset's trials that are measured, sorted.

    Records of trials that are no longer in the dataset are left out, and those of sittings that are
    not accepted. A trial of a named server outside of the dataset's grids counts only with the
    current specification.
    """
    held, spec = Inventory(dataset, Choice(experiments=(experiment,))), files.dataset(dataset)
    planned = set(held.measured.values())
    accepted = sittings.accepted(dataset) if spec.sittings else {None}

    def counts(file: Path) -> bool:
        trial = held.possible.get(file)
        if trial and spec.sitting_of(experiment, trial.n) not in accepted:
            return False
        if file in planned or trial is None:
            return file in planned
        return records.read(file)["spec"] == json.loads(trial.spec_text())

    return [file for file in held.files if counts(file)]


def tidy(path: Path) -> dict[str, list[dict]]:
    """Return the rows of every table for one trial, given its `trial.json`.

    Raises UserError for a record with unknown names, and for damaged logs.
    """
    trial = records.read(path)
    try:
        names = tables.keys(trial["experiment"])
        key = dict.fromkeys(names) | trial["spec"]["factors"]
        key |= {"server": trial["server"], "variant": path.parts[-3], "n": trial["n"]}
        under_load = "client" in trial["spec"]
        rows = _load_rows(trial, path) if under_load else {"points": trial["points"]}
        made = {"trials": [trial_row(trial)]} | rows
    except UserError as error:
        # The record has an unknown name, and the error no place.
        raise UserError(error.what, error.where or str(path), error.remedy) from None
    return {table: [key | row for row in made.get(table, [])] for table in EVERY_TABLE}


def _load_rows(trial: dict, path: Path) -> dict[str, list[dict]]:
    client, spec = registry.of_trial(trial["spec"]), trial["spec"]
    samples = kernel_samples.read(path.with_name("samples.csv"))
    rows, whole = [], {}
    for point in trial["points"]:
        reports = offered_rate.read(client, point, path.parent)
        rate, row = point_row(point, reports, samples, spec)
        rows.append(row)
        # A truncated report lacks bins.
        if rate.whole:
            whole[point["offered_rate_rps"]] = rate.report

    def of_whole(frame: Callable[[Any], pl.DataFrame]) -> list[dict]:
        return [
            {"offered_rate_rps": rate_rps} | row
            for rate_rps, report in whole.items()
            for row in frame(report).to_dicts()
        ]

    return {
        "points": rows,
        "times": of_whole(client.histogram),
        "samples": samples.to_dicts(),
        "seconds": of_whole(client.seconds),
        "probes": _probes(trial, path),
    }


def _probes(trial: dict, path: Path) -> list[dict]:
    """Return the rows of `probes`; none if the trial did not search."""
    recorded, spec = trial.get("search"), trial["spec"]
    if not recorded:
        return []
    client = registry.of_trial(spec)
    samples = kernel_samples.read(path.with_name(probes.SAMPLES_CSV))
    rows = [
        probes.row(probe, offered_rate.read(client, probe, path.parent), samples, spec)
        for probe in recorded["probes"]
    ]
    return probes.numbered(rows, spec["search"], recorded["reason"])


def trial_row(trial: dict) -> dict:
    """Return the columns of `trials` without the key."""
    server = files.server(trial["server"])
    machines = (
        [f"{name}: {_machine(host)}" for name, host in (trial.get("hosts") or {}).items()]
        if trial.get("separate")
        else None
    )
    machine, cpus = trial.get("machine", {}), trial.get("cpus", {})
    loads = [record.loads(p) for p in trial["points"]] if "client" in trial["spec"] else []
    of_all = [load for point in loads for load in point]
    clocks = [clock for p in trial["points"] for clock in p.get("clocks", {}).values()]
    return {
        "title": server.title,
        "language": server.language,
        "started_at": pl.Series([trial["started_at"]]).str.to_datetime(time_zone="UTC")[0],
        "server_cpus": cpus.get("server"),
        "client_cpus": cpus.get("client"),
        "clients": max(map(len, loads), default=None),
        "late_us": _most(load["late_us"] for load in of_all),
        "clock_bound_us": _most(
            [*(load["clock_bound_us"] for load in of_all), *(c["bound_us"] for c in clocks)]
        ),
        "machines": machines,
        "load_generator": trial["spec"].get("client"),
        "stopped_on_sigterm": all(stop["on_sigterm"] for stop in trial.get("stops", [])),
        **{
            name: trial.get(name)
            for name in ("version", "outcome", "reason", "wall_us", "offering_us", "testbed")
        },
        "descriptors": trial["descriptors"],
        **{
            name: machine.get(name)
            for name in ("cpu", "cpus", "memory_bytes", "kernel", "os", "toolchain", "commit")
        },
        "deviations": [check["name"] for check in trial.get("conformance", []) if not check["ok"]],
        **_system_calls(trial.get("system_calls")),
    }


def _system_calls(counted: dict | None) -> dict[str, float | None]:
    """Return the columns for a trial's system calls; None if they were not counted."""
    if not counted or not counted.get("replies"):
        return {"syscalls_per_reply": None, "waits_per_reply": None}
    waits = sum(times for name, times in counted["calls"].items() if name in WAITS)
    return {
        "syscalls_per_reply": sum(counted["calls"].values()) / counted["replies"],
        "waits_per_reply": waits / counted["replies"],
    }


def _machine(host: dict) -> str:
    """Return a host's description: "2 CPUs (AMD EPYC), Linux 6.1, eth0 of 10 Gbit/s, MTU …"."""
    machine, link = host["machine"], host["interface"]
    speed = link.get("speed_bit_per_s")
    return ", ".join([
        f"{machine['cpus']} CPUs ({machine['cpu']})",
        f"Linux {machine['kernel']}",
        f"{link.get('name')}{f' of {speed / 1e9:g} Gbit/s' if speed else ''}",
        f"MTU {link.get('mtu_bytes')} bytes",
    ])  # fmt: skip


def point_row(
    point: dict, reports: Sequence, samples: pl.DataFrame, spec: dict
) -> tuple[offered_rate.Offered, dict]:
    """Return a point's offered rate and its columns of `points`, without the key.

    The client's columns are null if the report is truncated.
    """
    duration_s = spec["duration_s"]
    during = samples.filter(pl.col("offered_rate_rps") == point["offered_rate_rps"])
    rate = offered_rate.offered(point, reports, during, spec)
    client = rate.client
    warmed = warm_up_columns(point.get("warm_up") or {})
    course, change = steadiness.steadiness_of(client.progress(rate.report, duration_s))
    return rate, {
        "fresh_start": point["fresh_start"],
        "idle_held": point.get("idle_held"),
        **rate.columns(point, duration_s),
        **rate.fields,
        "least_busy_process_share": _least_busy(point),
        **client.sampled(samples, during),
        **{name: value for name, value in warmed.items() if name in client.columns},
        **{name: kernel_samples.growth(during[name]) for name in tables.GROWING},
        **{f"{name}_max": during[name].max() for name in tables.HIGHEST},
        "course": course,
        "course_change": change,
    }


def warm_up_columns(recorded: Mapping[str, Any]) -> Fields:
    """Return the columns of a point's `warm_up` (`plan.record.RecordedChurn`), or of {}."""
    rates_cps = recorded.get("rates_cps") or []
    return {
        "warm_up_rounds": len(rates_cps) if recorded else None,
        "warm_up_first_cps": next(iter(rates_cps), None),
        "warm_up_last_cps": record.last_rate_cps(rates_cps),
        "warm_up_steady": recorded.get("steady"),
    }


def _least_busy(point: dict) -> float | None:
    """Return the share of the least busy worker in the CPU time of all; None for one worker."""
    spent_us, workers = point.get("workers_us"), point.get("workers", 1)
    if not spent_us or workers < 2:
        return None
    return spent_us[workers - 1] / sum(spent_us) if len(spent_us) >= workers else 0.0


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
