"""What is wrong with a target that Snakemake does not know."""

from collections.abc import Collection, Iterable

from deathmatch.errors import UserError
from deathmatch.plan import files, validation_errors
from deathmatch.plan.settings import Settings

WHERE = "command line"
KEYS = {"dataset": "dataset", "testbed": "testbed", "server": "servers",
        "experiment": "experiments"}  # fmt: skip


def mistake(targets: Iterable[str], rules: Collection[str]) -> UserError | None:
    """Return what to say of the first target that is a setting, a name, or a misspelt rule."""
    for target in targets:
        if target not in rules and "/" not in target and (error := _mistake(target, rules)):
            return error
    return None


def _mistake(target: str, rules: Collection[str]) -> UserError | None:
    if "=" in target:
        key, _, value = target.partition("=")
        settings = list(Settings.model_fields)
        known = key if key in settings else (validation_errors.nearest(key, settings) or "KEY")
        remedy = f"write --config before it: snakemake --config {known}={value}"
        keys = "" if key in settings else f"; KEY is one of {', '.join(settings)}"
        return UserError(f"{target} is a setting, not a target", WHERE, remedy + keys)
    for kind, key in KEYS.items():
        if target in files.names(kind):
            what = f"{target!r} is a name for {key}=, not a target"
            return UserError(what, WHERE, f"write snakemake --config {key}={target}")
    if near := validation_errors.near(target, sorted(rules)):
        return UserError(f"there is no target {target!r}", WHERE, near.strip())
    return None
