"""What a trial recorded, in today's words: `trial.json` of any version of this project.

In: a trial's `trial.json`. Out: a dict with today's keys, whole; the file stays as it was written.
"""

import json
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.plan import validation_errors
from deathmatch.plan.record import LoadRecord, StorageRecord
from deathmatch.plan.spec import Level

# Factors, load settings and keys of points that had another name in the first datasets.
FACTORS = {"setup": "configuration"}
LOAD = {"calls_per_connection": "requests_per_connection"}
POINT = {"server": "server_state", "client": "client_state"}
# Factors that an experiment did not have at first, each with the level that every trial had.
ADDED: dict[str, dict[str, Level]] = {
    "c10k": {"opening": 128, "run": "planned"},
    "dynamic": {"values": "repeated"},
}


# What the first datasets did not record: nothing is compared with it.
UNRECORDED = {"tools": {"harness": {}, "server": {}}}


class NotJson(UserError):
    """A record that is truncated, or was never one."""


def read(file: Path) -> dict:
    """Return a trial's record with today's keys.

    Raises FileNotFoundError if the trial was not measured, UserError if the file is not JSON or
    lacks a key that every record has.
    """
    record = upgrade(_parsed(file))
    _check(UNRECORDED | record, file)
    return record


def _parsed(file: Path) -> dict:
    content = file.read_bytes()
    try:
        record = json.loads(content, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise NotJson(f"not JSON: {error}", str(file), remedy(file)) from None
    if not isinstance(record, dict):
        raise NotJson("not a JSON object", str(file), remedy(file))
    return record


def _no_number(word: str) -> None:
    # JSON has none of these; Python would read and write them all the same.
    raise ValueError(f"{word} is not a number")


def _check(record: dict, file: Path) -> None:
    spec = record.get("spec")
    under_load = isinstance(spec, dict) and spec.get("client") is not None
    model = LoadRecord if under_load else StorageRecord
    validation_errors.validated(model, record, str(file), remedy(file))


def remedy(file: Path) -> str:
    """Return what to do about a file of a trial that cannot be read."""
    return f"remove {file.parent}, and it is measured again"


def upgrade(record: dict) -> dict:
    """Return the record with today's keys; one that has them already is returned as it is."""
    spec, names = record.get("spec"), {"factors": FACTORS, "load": LOAD}
    points = record.get("points")
    # What has another type is reported by the check of its schema.
    if not isinstance(spec, dict) or not isinstance(points, list):
        return record
    known = {key: spec[key] for key in names if isinstance(spec.get(key), dict)}
    spec = spec | {key: renamed(value, names[key]) for key, value in known.items()}
    if "factors" in known:
        added = ADDED.get(str(record.get("experiment")), {})
        spec["factors"] |= {name: at for name, at in added.items() if name not in spec["factors"]}
    # A measurement without load was one whose client was called memory.
    if spec.get("client") == "memory":
        spec = {key: value for key, value in spec.items() if key != "client"}
        spec["measures"] = "storage"
    return record | {"spec": spec, "points": [_point(point) for point in points]}


def _point(point: object) -> object:
    return renamed(point, POINT) if isinstance(point, dict) else point


def renamed(values: dict, names: dict[str, str]) -> dict:
    """Return the dict in its order, with those keys renamed that `names` has."""
    return {names.get(key, key): value for key, value in values.items()}


def variant(name: str) -> str:
    """Return a variant's name with today's factors: `setup=ets,body_bytes=100` has an old one."""
    pairs = (pair.partition("=") for pair in name.split(","))
    return ",".join(f"{FACTORS.get(factor, factor)}{sign}{level}" for factor, sign, level in pairs)
