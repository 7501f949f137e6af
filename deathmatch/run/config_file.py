"""`config/config.yaml`, looked at before Snakemake reads it."""

import codecs
from pathlib import Path

import yaml

from deathmatch.errors import UserError
from deathmatch.plan import validation_errors
from deathmatch.plan.settings import Settings

BACK = "or take the committed one again: git checkout config/config.yaml"


def check(file: Path) -> None:
    """Raise UserError if the file is missing, is not YAML, or holds no keys."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UserError(
            f"cannot be read: {error.strerror}", str(file), f"make it, {BACK}"
        ) from None
    # YAML, unlike TOML, has a place for this one.
    text = validation_errors.decoded(content.removeprefix(codecs.BOM_UTF8), str(file))
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _not_yaml(error, file) from None
    except (ValueError, RecursionError):
        # A date that is none, a number of thousands of digits, thousands of brackets.
        what = "not YAML: a date, a number or brackets that cannot be"
        raise UserError(what, str(file), f"write text in quotes, {BACK}") from None
    keys = ", ".join(f"`{key}: …`" for key, field in Settings.model_fields.items()
                     if field.is_required())  # fmt: skip
    if value is None:
        raise UserError("it is empty", str(file), f"write {keys}, each on its line; {BACK}")
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else "text"
        what = f"it is {kind}, not keys with values"
        raise UserError(what, f"{file}, line 1", f"write {keys}, each on its line; {BACK}")


def _not_yaml(error: yaml.YAMLError, file: Path) -> UserError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = f", line {mark.line + 1}" if mark else ""
    what = getattr(error, "problem", None) or str(error).splitlines()[0]
    remedy = f"write `key: value`, each on its line, with no tab before it; {BACK}"
    return UserError(f"not YAML: {what}", f"{file}{line}", remedy)
