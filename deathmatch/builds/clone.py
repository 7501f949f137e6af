"""The project's files on a host: this clone where the host shares its files, else a copy.

A copy is asked what it has by `./shell deathmatch answer QUESTION` there; question and answer are
JSON.
"""

import argparse
import json
from collections.abc import Mapping, Sequence

from deathmatch.builds import clients, server_build, server_commands, toolchain
from deathmatch.builds.copy import Copy
from deathmatch.errors import UserError
from deathmatch.hosts import sandbox
from deathmatch.hosts.host import Host
from deathmatch.hosts.testbed import Command, Installation
from deathmatch.load import registry
from deathmatch.plan import files
from deathmatch.plan.server import Server
from deathmatch.plan.spec import Level
from deathmatch.plan.testbed import Side


def on(host: Host, side: Side) -> Installation:
    """Return the project's installation on a host, a copy brought up to date; UserError if not."""
    return Clone() if host.shared else Copy(host, side.folder)


class Clone:
    """This clone."""

    def built(self, server: Server) -> dict:
        """Return the record of its build."""
        return server_build.built(server)

    def command(self, server: Server, values: Mapping[str, Level]) -> Command:
        """Return how it is started."""
        return Command(
            server_commands.words(server, dict(values)),
            server_commands.environment(server.name),
            server_commands.build_dir(server.name),
        )

    def located(self, words: Sequence[str]) -> list[str]:
        """Return the command with the program's path."""
        return clients.located(list(words))

    def clients(self, names: Sequence[str], where: str) -> dict[str, str]:
        """Build and check them; return their versions."""
        for name in names:
            _build(name, where)
        clients.check_programs(dict.fromkeys(names, where))
        return {name: clients.version(name) for name in names}

    def harness(self) -> dict[str, str]:
        """Return what trials run on here."""
        return toolchain.harness()


def _build(name: str, where: str) -> None:
    """Build a load generator that a server's build makes; UserError if that fails.

    What an earlier build left is another program, which must not be measured with.
    """
    maker = registry.client(name).built_by
    if not maker:
        return
    build = server_build.built(files.server(maker))
    if not build["ok"]:
        raise clients.failure(name, "could not be built", build["log"], where)


def main(given: argparse.Namespace) -> int:
    """Print the answer to the question: {"answer"}, or {"mistake"} with a UserError's parts."""
    sandbox.die_with_owner()
    try:
        answered = {"answer": answer(**json.loads(given.question))}
    except UserError as error:
        answered = {"mistake": [error.what, error.where, error.remedy]}
    print(json.dumps(answered, default=str))
    return 0


def answer(what: str, **arguments) -> object:
    """Return what the method `what` of this clone returns; a command as a dict of its fields."""
    if "server" in arguments:
        arguments["server"] = files.server(arguments["server"])
    value = getattr(Clone(), what)(**arguments)
    return vars(value) if what == "command" else value
