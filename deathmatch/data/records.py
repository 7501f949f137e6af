"""What a trial recorded, in today's words: `trial.json` of any version of this project.

In: a trial's `trial.json`. Out: a dict with today's keys; the file stays as it was written.
"""

import json
from pathlib import Path

from deathmatch.errors import UserError

# Factors, load settings and columns that had another name in the first datasets.
FACTORS = {"setup": "configuration"}
LOAD = {"calls_per_connection": "requests_per_connection"}
POINT = {"server": "server_state", "client": "client_state"}
COLUMNS = FACTORS | {"calls_per_reply": "syscalls_per_reply"}


def read(file: Path) -> dict:
    """Return a trial's record with today's keys.

    Raises FileNotFoundError if the trial was not measured, UserError if the file is no JSON.
    """
    text = file.read_text()
    try:
        record = json.loads(text)
    except ValueError as error:
        remedy = f"remove {file.parent}, and it is measured again"
        raise UserError(f"not JSON: {error}", where=str(file), remedy=remedy) from None
    return upgrade(record)


def upgrade(record: dict) -> dict:
    """Return the record with today's keys; one that has them already is returned as it is."""
    spec, names = record.get("spec", {}), {"factors": FACTORS, "load": LOAD}
    spec = spec | {key: renamed(spec[key], names[key]) for key in names if key in spec}
    # A measurement without load was one whose client was called memory.
    if spec.get("client") == "memory":
        spec = {key: value for key, value in spec.items() if key != "client"}
        spec["measures"] = "storage"
    points = [renamed(point, POINT) for point in record.get("points", [])]
    return record | ({"spec": spec} if "spec" in record else {}) | {"points": points}


def renamed(values: dict, names: dict[str, str]) -> dict:
    """Return the dict in its order, with those keys renamed that `names` has."""
    return {names.get(key, key): value for key, value in values.items()}


def variant(name: str) -> str:
    """Return a variant's name with today's factors: `setup=ets,body_bytes=100` has an old one."""
    pairs = (pair.partition("=") for pair in name.split(","))
    return ",".join(f"{FACTORS.get(factor, factor)}{sign}{level}" for factor, sign, level in pairs)
