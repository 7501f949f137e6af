"""Raw logs to tidy tables: `./shell deathmatch tidy data/<dataset>/<experiment>`.

Reads the `trial.json` of each of the dataset's trials that is measured, with the logs beside it,
and writes the tables that `deathmatch.data.tables` describes. The raw logs stay as they are.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from deathmatch.data import (
    kernel_samples,
    laws,
    point_limits,
    probes,
    records,
    steadiness,
    tables,
    warm_up,
)
from deathmatch.data.inventory import Inventory
from deathmatch.errors import Truncated, UserError
from deathmatch.load import registry
from deathmatch.load.generator import Fields, LoadGenerator
from deathmatch.plan import files, record
from deathmatch.plan.dataset import EVERY_TABLE
from deathmatch.plan.selection import Choice

# The system calls by which a program waits for descriptors.
WAITS = {
    "select", "pselect6", "poll", "ppoll", "epoll_wait", "epoll_pwait", "epoll_pwait2",
    "io_uring_enter",
}  # fmt: skip


def main(given: argparse.Namespace) -> int:
    """Write the tables of the experiment named on the command line."""
    folder = Path(given.folder)
    experiment = folder.name
    trials = _measured(folder.parent.name, experiment)
    if not trials:
        raise UserError("no trial is measured", str(folder), "run snakemake")
    made = frames(experiment, trials)
    for table in files.dataset(folder.parent.name).tables(experiment):
        tables.write(made[table], experiment, table, folder)
    return 0


def frames(experiment: str, trials: Iterable[Path]) -> dict[str, pl.DataFrame]:
    """Return every table of an experiment, its points held against the laws."""
    return framed(experiment, [tidy(path) for path in trials])


def framed(experiment: str, made: Sequence[dict[str, list[dict]]]) -> dict[str, pl.DataFrame]:
    """Return the tables of what `tidy` returned of trials, their points held against the laws."""
    found = {
        table: pl.DataFrame(
            [row for one in made for row in one[table]],
            schema=tables.columns(experiment, table),
            orient="row",
        )
        for table in EVERY_TABLE
    }
    judged = laws.judgements(laws.evidence(experiment, found))
    return found | {"points": laws.marked(found["points"], judged)}


def _measured(dataset: str, experiment: str) -> list[Path]:
    """Return the records of the dataset's trials that are measured, sorted.

    Not all that the folder holds: a trial that is no longer in the dataset would come along.
    Of those that are not in its grids, being of a server that someone named, one of another
    specification does not count.
    """
    held = Inventory(dataset, Choice(experiments=(experiment,)))
    planned = set(held.measured.values())

    def counts(file: Path) -> bool:
        trial = held.possible.get(file)
        if file in planned or trial is None:
            return file in planned
        return records.read(file)["spec"] == json.loads(trial.spec_text())

    return [file for file in held.files if counts(file)]


def tidy(path: Path) -> dict[str, list[dict]]:
    """Return the rows of every table for one trial, given its `trial.json`.

    Raises UserError for a record of what the study does not have, and for logs that are damaged.
    """
    try:
        return _tidied(records.read(path), path)
    except UserError as error:
        # Of a name in it that nothing has.
        raise UserError(error.what, error.where or str(path), error.remedy) from None


def _tidied(trial: dict, path: Path) -> dict[str, list[dict]]:
    names = tables.keys(trial["experiment"])
    key = dict.fromkeys(names) | trial["spec"]["factors"]
    key |= {"server": trial["server"], "variant": path.parts[-3], "n": trial["n"]}
    rows = _load_rows(trial, path) if "client" in trial["spec"] else _storage_rows(trial)
    made = {"trials": [trial_row(trial)]} | rows
    return {table: [key | row for row in made.get(table, [])] for table in EVERY_TABLE}


def _storage_rows(trial: dict) -> dict[str, list[dict]]:
    return {"points": trial["points"]}


def _load_rows(trial: dict, path: Path) -> dict[str, list[dict]]:
    client = registry.generator(trial["spec"]["client"])
    samples = kernel_samples.read(path.with_name("samples.csv"))
    points = trial["points"]
    parts = [[client.read(path.parent / one["log"]) for one in record.loads(p)] for p in points]
    reports = {
        p["offered_rate_rps"]: client.merge(each) if len(each) > 1 else each[0]
        for p, each in zip(points, parts)
    }
    rows = [
        point_row(p, reports[p["offered_rate_rps"]], samples, trial["spec"], each)
        for p, each in zip(points, parts)
    ]
    # The bins of a report that is not whole would be some of all, and the last one cut.
    whole = [row["offered_rate_rps"] for row in rows if row["report"] == "whole"]

    def of_whole(told: Callable[[Any], pl.DataFrame]) -> list[dict]:
        return [
            {"offered_rate_rps": rate_rps} | row
            for rate_rps in whole
            for row in told(reports[rate_rps]).to_dicts()
        ]

    return {
        "points": rows,
        "times": of_whole(client.histogram),
        "samples": samples.to_dicts(),
        "seconds": of_whole(client.seconds),
        "probes": _probes(trial, path),
    }


def _probes(trial: dict, path: Path) -> list[dict]:
    """Return the rows of `probes`; none of a trial that did not search."""
    found, spec = trial.get("search"), trial["spec"]
    if not found:
        return []
    client = registry.generator(spec["client"])
    samples = kernel_samples.read(path.with_name(probes.SAMPLES_CSV))
    rows = []
    for probe in found["probes"]:
        parts = [client.read(path.parent / load["log"]) for load in record.loads(probe)]
        rows.append(probes.row(probe, parts, samples, spec))
    return probes.told_of_all(rows, spec["search"], found["reason"])


def trial_row(trial: dict) -> dict:
    """Return the columns of `trials` beside the key."""
    server = files.server(trial["server"])
    machine, cpus = trial.get("machine", {}), trial.get("cpus", {})
    loads = [record.loads(p) for p in trial["points"]] if "client" in trial["spec"] else []
    of_all = [load for each in loads for load in each]
    return {
        "title": server.title,
        "language": server.language,
        "started_at": pl.Series([trial["started_at"]]).str.to_datetime(time_zone="UTC")[0],
        "server_cpus": cpus.get("server"),
        "client_cpus": cpus.get("client"),
        "clients": max(map(len, loads), default=None),
        "late_us": _most(load["late_us"] for load in of_all),
        "clock_bound_us": _most(
            [
                *(load["clock_bound_us"] for load in of_all),
                *(one["bound_us"] for p in trial["points"] for one in p.get("clocks", {}).values()),
            ]
        ),
        "machines": _machines(trial) if trial.get("separate") else None,
        "stopped_on_sigterm": all(stop["on_sigterm"] for stop in trial.get("stops", [])),
        **{
            name: trial.get(name)
            for name in ("version", "outcome", "reason", "wall_us", "offering_us", "testbed")
        },
        "descriptors": trial["descriptors"],
        "throttle": "; ".join(f"{k} {v}" for k, v in trial.get("throttle", {}).items()),
        **{
            name: machine.get(name)
            for name in ("cpu", "cpus", "memory_bytes", "kernel", "os", "toolchain", "commit")
        },
        "deviations": [check["name"] for check in trial.get("conformance", []) if not check["ok"]],
        **_system_calls(trial.get("system_calls")),
    }


def _system_calls(counted: dict | None) -> dict[str, float | None]:
    """Return the columns of a trial's count of system calls; None where there is none."""
    if not counted or not counted.get("replies"):
        return {"syscalls_per_reply": None, "waits_per_reply": None}
    waits = sum(times for name, times in counted["calls"].items() if name in WAITS)
    return {
        "syscalls_per_reply": sum(counted["calls"].values()) / counted["replies"],
        "waits_per_reply": waits / counted["replies"],
    }


def _machines(trial: dict) -> list[str]:
    """Return what each host of a trial is, if each is a machine of its own."""
    return [f"{name}: {_machine(found)}" for name, found in (trial.get("hosts") or {}).items()]


def _machine(found: dict) -> str:
    """Return "2 CPUs (AMD EPYC), Linux 6.1, eth0 of 10 Gbit/s, MTU 1500 bytes"."""
    machine, link = found["machine"], found["interface"]
    speed = link.get("speed_bit_per_s")
    return ", ".join([
        f"{machine['cpus']} CPUs ({machine['cpu']})",
        f"Linux {machine['kernel']}",
        f"{link.get('name')}{f' of {speed / 1e9:g} Gbit/s' if speed else ''}",
        f"MTU {link.get('mtu_bytes')} bytes",
    ])  # fmt: skip


def point_row(point: dict, report, samples: pl.DataFrame, spec: dict, parts: Sequence = ()) -> dict:
    """Return the columns of `points` beside the key.

    `parts` are the reports of the point's clients, if there are several, of which `report` is
    made. A truncated report leaves the client's columns null.
    """
    client, duration_s = registry.generator(spec["client"]), spec["duration_s"]
    offered = point["offered_rate_rps"]
    during = samples.filter(pl.col("offered_rate_rps") == offered)
    try:
        fields, whole = client.parse(report, duration_s), "whole"
    except Truncated:
        fields, whole = dict.fromkeys(client.columns), "truncated"
    fields |= client.sampled(samples, during)
    warmed = warm_up.columns(point.get("warm_up") or {})
    fields |= {name: value for name, value in warmed.items() if name in client.columns}
    actual = client.actual_rate_rps(fields, during, spec)
    limited = client.limited(fields, offered, actual)
    if len(parts) > 1:
        limited, by_client = point_limits.of_several(point, parts, actual, spec)
        # By name, where the load generator says why.
        if point_limits.REASON in fields and whole == "whole":
            fields[point_limits.REASON] = by_client
    return {
        "offered_rate_rps": offered,
        "duration_us": round(duration_s * 1e6),
        "fresh_start": point["fresh_start"],
        "server_state": point["server_state"],
        "client_state": record.client_state(point),
        "idle_held": point.get("idle_held"),
        "report": whole,
        "actual_rate_rps": actual,
        "client_limited": limited,
        **fields,
        **{name: kernel_samples.growth(during[name]) for name in tables.GROWING},
        **{f"{name}_max": during[name].max() for name in tables.HIGHEST},
        **course(client, report, duration_s),
    }


def course(client: LoadGenerator, report, duration_s: float) -> Fields:
    """Return the columns of `points` that tell whether a report is of a steady run."""
    word, change = steadiness.course(client.progress(report, duration_s))
    return {"course": word, "course_change": change}


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
