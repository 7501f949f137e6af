"""The project's files on a host: this clone if the host shares its files, else a copy.

A copy answers questions by `./shell deathmatch answer QUESTION` there; question and answer are
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
    """Return the project's installation on a host; a copy is updated first.

    Raises UserError if that fails.
    """
    return Clone() if host.shared else Copy(host, side.folder)


class Clone:
    """This clone."""

    def built(self, server: Server) -> dict:
        """Return the record of a server's build, after building it if that is due."""
        return server_build.built(server)

    def command(self, server: Server, values: Mapping[str, Level]) -> Command:
        """Return the command that starts a server."""
        return Command(
            server_commands.words(server, dict(values)),
            server_commands.environment(server.name),
            server_commands.build_dir(server.name),
        )

    def located(self, words: Sequence[str]) -> list[str]:
        """Return a load generator's command with the program's path."""
        return clients.located(list(words))

    def clients(self, names: Sequence[str], where: str) -> dict[str, str]:
        """Build and check load generators; return {name: version}."""
        for name in names:
            # Always, as the program of an earlier build must not measure.
            if maker := registry.client(name).built_by:
                build = server_build.built(files.server(maker))
                if not build["ok"]:
                    raise clients.failure(name, "could not be built", build["log"], where)
        clients.check_programs(dict.fromkeys(names, where))
        return {name: clients.version(name) for name in names}

    def harness(self) -> dict[str, str]:
        """Return `toolchain.harness`."""
        return toolchain.harness()


def main(given: argparse.Namespace) -> int:
    """Print the answer as JSON: {"answer"}, or {"mistake"} with the parts of a UserError."""
    sandbox.die_with_owner()
    try:
        answered = {"answer": answer(**json.loads(given.question))}
    except UserError as error:
        answered = {"mistake": [error.what, error.where, error.remedy]}
    print(json.dumps(answered, default=str))
    return 0


def answer(what: str, **arguments) -> object:
    """Call the method `what` of Clone; return its result, a command as a dict of its fields."""
    if "server" in arguments:
        arguments["server"] = files.server(arguments["server"])
    value = getattr(Clone(), what)(**arguments)
    return vars(value) if what == "command" else value
