"""What the command line of Snakemake asks for, said where it is not what the user meant."""

from collections.abc import Collection

from snakemake import cli

from deathmatch.errors import UserError
from deathmatch.plan import files, validation_errors
from deathmatch.plan.settings import Settings

WHERE = "command line"
KEYS = {"dataset": "dataset", "testbed": "testbed", "server": "servers",
        "experiment": "experiments"}  # fmt: skip


def targets(words: list[str]) -> list[str]:
    """Return the targets among the words of the command line, the program's name not counted.

    Snakemake knows them only once it has read the Snakefile.
    """
    known, _ = cli.get_argument_parser(profiles=[]).parse_known_args(words)
    return list(known.targets)


def elsewhere(words: list[str]) -> bool:
    """Return whether the jobs are done on other machines, as the command line or its profile says.

    Snakemake itself knows only once it has read the Snakefile.
    """
    known, _ = cli.get_argument_parser(profiles=[]).parse_known_args(words)
    profiles = [name for name in known.profile or [] if name != "none"]
    if profiles:
        known, _ = cli.get_argument_parser(profiles=profiles).parse_known_args(words)
    return known.executor not in (None, "local")


def check(named: list[str], rules: Collection[str]) -> None:
    """Raise UserError for a target that is a setting, or a name, or nearly a rule's name."""
    for target in named:
        if target not in rules and "/" not in target:
            _check(target, rules)


def _check(target: str, rules: Collection[str]) -> None:
    if "=" in target:
        key, _, value = target.partition("=")
        settings = list(Settings.model_fields)
        known = key if key in settings else (validation_errors.nearest(key, settings) or "KEY")
        remedy = f"write --config before it: snakemake --config {known}={value}"
        keys = "" if key in settings else f"; KEY is one of {', '.join(settings)}"
        raise UserError(f"{target} is a setting, not a target", WHERE, remedy + keys)
    for kind, key in KEYS.items():
        if target in files.names(kind):
            what = f"{target!r} is a name for {key}=, not a target"
            raise UserError(what, WHERE, f"write snakemake --config {key}={target}")
    if near := validation_errors.near(target, sorted(rules)):
        raise UserError(f"there is no target {target!r}", WHERE, near.strip())
