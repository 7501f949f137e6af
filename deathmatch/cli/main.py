"""The project's command line: `./shell deathmatch`, or `python -m deathmatch`."""

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

{groups}The help of each command has an example. README.md has more. In a shell of `./shell bash` or
`nix develop`, leave out ./shell.
"""
MEASURE = {
    "./shell snakemake -n": "show what would be measured, and what is left to do",
    "./shell snakemake": "measure what is left, and write the paper",
    "./shell snakemake --config dataset=smoke": "do the same for the smallest dataset",
    "./shell snakemake paper": "write the paper of the committed data",
    "./shell jupyter lab": "open the notebooks",
}


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
    # From now on an interrupt raises KeyboardInterrupt: `deathmatch.__main__` explains the default.
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Modules use paths relative to the root; bin/deathmatch has changed into it.
    os.chdir(ROOT)
    return module.main(given)


def run() -> None:
    """Run `main` as a program: a user's mistake ends it with a message, not a traceback."""
    run_main(main)


def version() -> str:
    """Return the project's version and commit, for a report or a citation."""
    # Not at the top, as help needs no library, and this needs PyYAML.
    from deathmatch.measure import machine
    from deathmatch.plan import paths

    here = machine.commit_of(ROOT)
    return f"Deathmatch {paths.version()}, commit {here.name or f'unknown: {here.unknown}'}"


def overview() -> str:
    """Return the list of commands, in the order of a user's work."""
    groups = ""
    for title, commands in GROUPS.items():
        if title == STEPS:
            groups += _section("Measure, and write the paper", MEASURE)
        groups += _section(title, {name: command.about for name, command in commands.items()})
    return OVERVIEW.format(program=PROGRAM, groups=groups)


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
    """Return a line that calls the command in the project's folder."""
    return f"{PROGRAM} {name} {command.example}".rstrip()


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are `UserError`, with the option that prints help."""

    def error(self, message: str) -> None:
        name = self.prog.removeprefix(f"{PROGRAM} ")
        raise UserError(message, name, f"{self.prog} --help shows an example")
