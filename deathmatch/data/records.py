"""A trial's record, `trial.json`, checked against its model."""

import json
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.plan import validation_errors
from deathmatch.plan.record import LoadRecord, StorageRecord


class NotJson(UserError):
    """A record that is no JSON object, perhaps because it is truncated."""


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
    # NaN and infinities, which Python reads and writes although JSON has none.
    raise ValueError(f"{word} is not a number")


def remedy(file: Path) -> str:
    """Return the remedy for a trial's file that cannot be read."""
    return f"remove {file.parent}, and it is measured again"
