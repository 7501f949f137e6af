"""What can stand at the cursor: the shells' completion calls `deathmatch complete -- WORDS`."""

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

from deathmatch.cli.commands import COMMANDS
from deathmatch.cli.main import parser
from deathmatch.errors import UserError
from deathmatch.plan.paths import names, path_of
from deathmatch.plan.root import ROOT

PROGRAMS = {
    "snakemake": "measure what is left, write the paper",
    "deathmatch": "every other task",
    "jupyter": "the notebooks, by jupyter lab",
    "pytest": "the tests",
    "ruff": "check the style of Python",
    "snakefmt": "the style of Snakefiles",
    "bash": "a shell with all tools",
}
CHOICES = {
    "--nix": "use Nix",
    "--debian": "use Debian 12",
    "--help": "what it is, with examples",
}
TARGETS = {
    "paper": "the paper of the committed data, or of dataset=, measuring nothing",
    "retry": "try again what could not be built or measured",
    "new_server": "a folder to start from, name= kind=",
    "check_dataset": "is dataset= fit to be shown to others?",
    "archive": "the raw logs of dataset= in one file for each experiment",
}
OPTIONS = {
    "-n": "what is measured, and what is left to do",
    "--config": "another dataset, only some servers …",
    "--report": "what was made, with captions, as one page",
}


def main(given: argparse.Namespace) -> int:
    """Print what completes the last of the words, one a line, with a tab before its meaning."""
    try:
        found = candidates(given.words)
    except UserError:
        # The command itself will say which name cannot be used.
        return 1
    for word, about in found.items():
        print(f"{word}\t{about}" if about else word)
    return 0


def candidates(words: list[str]) -> dict[str, str]:
    """Return {word: meaning} of what completes the last of the words of a command line.

    The first word is the program, `./shell` or `deathmatch`; an empty last word stands for a
    cursor after a space. Nothing is returned where a file's name belongs.
    """
    program, *before, current = words
    if Path(program).name == "shell":
        while before and before[0] in CHOICES:
            before.pop(0)
        if not before:
            return starting(current, CHOICES if current.startswith("-") else PROGRAMS)
        program = before.pop(0)
    if Path(program).name == "snakemake":
        return starting(current, _snakemake(before, current))
    if Path(program).name == "deathmatch":
        return starting(current, _deathmatch(before, current))
    return {}


def starting(start: str, known: dict[str, str]) -> dict[str, str]:
    """Return those words that begin so."""
    return {word: about for word, about in known.items() if word.startswith(start)}


def _deathmatch(before: list[str], current: str) -> dict[str, str]:
    if not before:
        return {name: command.about for name, command in COMMANDS.items()}
    name, *before = before
    if name not in COMMANDS:
        return {}
    actions = parser(name, COMMANDS[name])._actions
    options = {flag: each for each in actions for flag in each.option_strings}
    last = options.get(before[-1]) if before else None
    if last and last.nargs != 0:
        return _values(last)
    if current.startswith("-"):
        shown = {flag: each for flag, each in options.items() if each.help != argparse.SUPPRESS}
        return {flag: each.help for flag, each in shown.items() if flag.startswith("--")}
    places = [each for each in actions if not each.option_strings]
    taken = sum(
        not word.startswith("-") and (i == 0 or not _takes_value(options.get(before[i - 1])))
        for i, word in enumerate(before)
    )
    return _values(places[taken]) if taken < len(places) else {}


def _takes_value(action: argparse.Action | None) -> bool:
    return action is not None and action.nargs != 0


def _values(action: argparse.Action) -> dict[str, str]:
    kind = getattr(action, "kind", None)
    if kind == "notebook":
        return plain(str(path_of(kind, each).relative_to(ROOT)) for each in names(kind))
    return plain(names(kind) if kind else action.choices or [])


def _snakemake(before: list[str], current: str) -> dict[str, str]:
    key, equals, value = current.partition("=")
    options = [word for word in before if word.startswith("-")]
    if options and options[-1] in ("--config", "-C"):
        if not equals:
            return {f"{each}=": "" for each in settings()}
        kind = settings().get(key)
        # servers=a,b: what stands before the last comma stays.
        kept = value[: value.rfind(",") + 1] if key.endswith("s") else ""
        return plain(f"{key}={kept}{each}" for each in (names(kind) if kind else []))
    return OPTIONS if current.startswith("-") else TARGETS


def settings() -> dict[str, str]:
    """Return {key: kind of its value} of config/config.yaml and of a new server."""
    text = (ROOT / "config" / "config.yaml").read_text()
    keys = re.findall(r"^(\w+):", text, re.MULTILINE)
    kinds = {key: key.removesuffix("s") for key in keys}
    return kinds | {"compare": "dataset", "name": "", "kind": "template"}


def plain(found: Iterable[str]) -> dict[str, str]:
    """Return the words without a meaning to show."""
    return dict.fromkeys(found, "")
