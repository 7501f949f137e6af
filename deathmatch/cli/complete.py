"""Completion with the Tab key, by argcomplete: what may follow `./shell` and `deathmatch`.

`deathmatch completion SHELL` prints what registers it in a shell. At each Tab, that calls
`bin/deathmatch` with the line typed so far in the environment (https://kislyuk.github.io/argcomplete/).
"""

import argparse
import os
import re
from pathlib import Path

from deathmatch.cli.commands import COMMANDS
from deathmatch.errors import UserError
from deathmatch.plan.paths import names
from deathmatch.plan.root import ROOT

PROGRAMS = {
    "snakemake": "measure what is left, write the paper",
    "deathmatch": "every other task",
    "jupyter": "the notebooks, by jupyter lab",
    "pytest": "the tests",
    "ruff": "check the style of Python",
    "snakefmt": "check the style of Snakefiles",
    "bash": "a shell with all tools",
}
TARGETS = {
    "paper": "the paper of the committed data, or of dataset=, measuring nothing",
    "retry": "try again what could not be built or measured",
    "new_server": "a folder to start from, name= kind=",
    "check_dataset": "is dataset= fit to be shown to others?",
    "archive": "the raw logs of dataset= in one file for each experiment",
}


def main(given: argparse.Namespace) -> int:
    """Print what registers the completion in the shell that the command line names."""
    try:
        from argcomplete import shell_integration
    except ImportError:
        raise UserError(
            "completion needs the Python package argcomplete", remedy="run ./shell true once"
        ) from None
    program = str(ROOT / "bin" / "deathmatch")
    print(
        shell_integration.shellcode(
            ["shell", "deathmatch"], shell=given.shell, argcomplete_script=program
        )
    )
    return 0


def answer() -> None:
    """Print what completes COMP_LINE, for the shell that called, and end this process."""
    try:
        import argcomplete
    except ImportError:
        # Nothing is set up yet.
        return
    program = Path(os.environ["COMP_LINE"].split()[0]).name
    parser = shell_parser() if program == "shell" else add_commands(argparse.ArgumentParser())
    argcomplete.autocomplete(parser, always_complete_options=False)


def add_commands(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Return the parser with every command of deathmatch as a command of it."""
    commands = parser.add_subparsers()
    for name, command in COMMANDS.items():
        command.arguments(commands.add_parser(name, help=command.about))
    return parser


def shell_parser() -> argparse.ArgumentParser:
    """Return a parser of what may follow `./shell`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nix", action="store_true", help="use Nix")
    parser.add_argument("--debian", action="store_true", help="use Debian's packages")
    programs = parser.add_subparsers()
    for name, about in PROGRAMS.items():
        program = programs.add_parser(name, help=about)
        if name == "deathmatch":
            add_commands(program)
        elif name == "snakemake":
            program.add_argument("targets", nargs="*").completer = lambda **_: TARGETS
            program.add_argument("-n", action="store_true", help="show what is left to do")
            program.add_argument("--report", help="gather what was made, as one page")
            option = program.add_argument("--config", nargs="*", help="choose what to measure")
            option.completer = setting
        else:
            program.add_argument("paths", nargs="*")
    return parser


def setting(prefix: str, **_) -> list[str]:
    """Return what completes `key=value` of Snakemake's --config; values may be lists."""
    key, equals, value = prefix.partition("=")
    if not equals:
        return [f"{key}=" for key in settings()]
    kind = settings().get(key)
    # servers=a,b: what stands before the last comma stays.
    kept = value[: value.rfind(",") + 1] if key.endswith("s") else ""
    return [f"{key}={kept}{name}" for name in (names(kind) if kind else [])]


def settings() -> dict[str, str]:
    """Return {key: kind of its value} of config/config.yaml and of a new server."""
    text = (ROOT / "config" / "config.yaml").read_text()
    keys = re.findall(r"^(\w+):", text, re.MULTILINE)
    kinds = {key: key.removesuffix("s") for key in keys}
    return kinds | {"compare": "dataset", "name": "", "kind": "template"}
