"""The study's one command line: `python -m deathmatch COMMAND`. Snakemake calls it; so can you."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from deathmatch.errors import run_main

# Of each command: the module with its `arguments(parser)` and `main(given)`, and what it does.
# Modules are imported only when called: polars alone takes half a second to load.
COMMANDS = {
    "new-server": ("plan.new_server", "make a server's folder from the template"),
    "docs": ("plan.docs", "write the reference in servers/README.md from the schema"),
    "lock": ("hosts.lock", "lock a server's Python packages, with hashes"),
    "build": ("hosts.server_build", "build one server"),
    "audit": (
        "control.audit",
        "say what on a testbed would spoil a measurement, and how to mend it",
    ),
    "trial": ("control.run_trial", "run one trial"),
    "failures": ("control.failures", "list the servers that could not be measured"),
    "tidy": ("data.tidy", "write an experiment's tidy tables from its raw logs"),
    "check": ("data.check", "check that a dataset is fit to be compared with others"),
    "migrate": ("data.migrate", "rename what an earlier version of this project named otherwise"),
    "archive": ("data.archive", "pack a dataset's raw logs for git"),
    "systems": ("analysis.systems", "print a Markdown row for every system"),
    "notebook": ("paper.notebook", "run one notebook on one dataset"),
    "paper": ("paper.build", "make the HTML and the PDF paper of a dataset"),
}


def main(words: Sequence[str] | None = None) -> int | None:
    """Run the command that `words` (default: sys.argv) name; return its exit status."""
    words = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(prog="deathmatch", description=__doc__)
    commands = parser.add_subparsers(title="commands", dest="command", required=True)
    for name, (module, about) in COMMANDS.items():
        command = commands.add_parser(name, help=about, description=f"{about.capitalize()}.")
        if words[:1] == [name]:
            import_module(f"deathmatch.{module}").arguments(command)
    given = parser.parse_args(words)
    return import_module(f"deathmatch.{COMMANDS[given.command][0]}").main(given)


def run() -> None:
    """Run `main` as a program: a mistake of the user's ends it with a message, not a traceback."""
    run_main(main)
