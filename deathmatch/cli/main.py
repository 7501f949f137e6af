"""The study's one command line: `./shell deathmatch`, or `python -m deathmatch`."""

import argparse
import os
import signal
import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module

from deathmatch.cli.arguments import ARGUMENTS
from deathmatch.cli.commands import COMMANDS, GROUPS, STEPS, Command
from deathmatch.errors import UserError, run_main, suggestions
from deathmatch.plan.paths import ROOT

PROGRAM = "./shell deathmatch"
WIDTH = 99
OVERVIEW = """\
usage: {program} COMMAND [ARGUMENT...]
       {program} COMMAND --help
       {program} --version

{groups}Examples, to be pasted in the project's folder:
{examples}
In the shell of `./shell bash` or `nix develop`, leave out ./shell. README.md has the rest.
"""
# Snakemake does the greater part of the work, by commands of its own.
MEASURE = {
    "./shell snakemake -n": "what it would measure, and what is left to do",
    "./shell snakemake": "measure what is left, write the paper",
    "./shell snakemake --config dataset=smoke": "likewise the smallest dataset",
    "./shell snakemake paper": "the paper of the committed data",
    "./shell jupyter lab": "the notebooks, ready to run",
}
EXAMPLES = (
    "./shell deathmatch list datasets",
    "./shell deathmatch new-server mine",
    "./shell deathmatch build mine",
    "./shell snakemake --config dataset=smoke servers=mine",
    "./shell deathmatch check --help",
)


def main(words: Sequence[str] | None = None) -> int | None:
    """Run the command that `words` (default: sys.argv) name; return its exit status."""
    words = list(sys.argv[1:] if words is None else words)
    if not words or words[0] in ("-h", "--help", "help"):
        print(overview(), end="")
        return 0
    if words == ["--version"]:
        print(version())
        return 0
    name, *rest = words
    command = COMMANDS.get(name)
    if command is None:
        raise UserError(f"there is no command {name!r}", remedy=suggestions(name, COMMANDS))
    given = parser(name, command).parse_args(rest)
    module = import_module(f"deathmatch.{command.module}")
    # From here on, what was begun is ended orderly: see `deathmatch.__main__`.
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Modules name the project's files from its root; bin/deathmatch is there already.
    os.chdir(ROOT)
    return module.main(given)


def run() -> None:
    """Run `main` as a program: a mistake of the user's ends it with a message, not a traceback."""
    run_main(main)


def version() -> str:
    """Return the project's version and commit, for a report or a citation."""
    # Help needs no library, and this needs PyYAML.
    from deathmatch.measure import machine
    from deathmatch.plan import paths

    here = machine.commit_of(ROOT)
    return f"Deathmatch {paths.version()}, commit {here.name or f'unknown: {here.unknown}'}"


def overview() -> str:
    """Return what there is to do, in the order of a user's work, with examples."""
    groups = ""
    for title, commands in GROUPS.items():
        if title == STEPS:
            groups += _section("Measure, and write the paper", MEASURE)
        groups += _section(title, {name: command.about for name, command in commands.items()})
    examples = "".join(f"  {line}\n" for line in EXAMPLES)
    return OVERVIEW.format(program=PROGRAM, groups=groups, examples=examples)


def _section(title: str, lines: dict[str, str]) -> str:
    width = max(map(len, lines))
    body = "".join(f"  {left:{width}}  {about}\n" for left, about in lines.items())
    return f"{title}\n{body}\n"


def parser(name: str, command: Command) -> argparse.ArgumentParser:
    """Return the parser of one command, with its arguments, its description and its example."""
    paragraphs = [f"{command.about[0].upper()}{command.about[1:]}.", command.detail]
    made = _Parser(
        prog=f"{PROGRAM} {name}",
        description="\n".join(
            textwrap.fill(paragraph, WIDTH, break_long_words=False, break_on_hyphens=False)
            for paragraph in paragraphs
        ),
        epilog=f"example:\n  {example(name, command)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for argument, options in ARGUMENTS[name]:
        made.add_argument(argument, **options)
    return made


def example(name: str, command: Command) -> str:
    """Return a line that calls the command, to be pasted in the project's folder."""
    return f"{PROGRAM} {name} {command.example}".rstrip()


class _Parser(argparse.ArgumentParser):
    """Ends with a `UserError` that says where help is."""

    def error(self, message: str) -> None:
        name = self.prog.removeprefix(f"{PROGRAM} ")
        raise UserError(message, name, f"{self.prog} --help shows an example")
