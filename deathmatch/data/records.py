"""What a trial recorded: its `trial.json`, checked against the record's model."""

import json
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.plan import validation_errors
from deathmatch.plan.record import LoadRecord, StorageRecord


class NotJson(UserError):
    """A record that is truncated, or was never one."""


def read(file: Path) -> dict:
    """Return a trial's record.

    Raises FileNotFoundError if the trial was not measured, UserError if the file is not JSON or
    lacks a key that every record has.
    """
    content = file.read_bytes()
    try:
        record = json.loads(content, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise NotJson(f"not JSON: {error}", str(file), remedy(file)) from None
    if not isinstance(record, dict):
        raise NotJson("not a JSON object", str(file), remedy(file))
    spec = record.get("spec")
    under_load = isinstance(spec, dict) and spec.get("client") is not None
    model = LoadRecord if under_load else StorageRecord
    validation_errors.validated(model, record, str(file), remedy(file))
    return record


def _no_number(word: str) -> None:
    # JSON has none of these; Python would read and write them all the same.
    raise ValueError(f"{word} is not a number")


def remedy(file: Path) -> str:
    """Return what to do about a file of a trial that cannot be read."""
    return f"remove {file.parent}, and it is measured again"
