"""Where a host has the project, with what is built of it: this clone, or a copy elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from deathmatch.hosts import clients, server_build, server_commands, toolchain
from deathmatch.load import registry
from deathmatch.plan import files
from deathmatch.plan.server import Server
from deathmatch.plan.spec import Level


@dataclass(frozen=True)
class Command:
    """How a server is started on a host: words, environment and folder, as the host has them."""

    words: list[str]
    environment: dict[str, str]
    folder: Path


class Site(Protocol):
    """The project on a host."""

    def built(self, server: Server) -> dict:
        """Return what came of the server's build there, building it first if that is due.

        As `server_build.built`.
        """

    def command(self, server: Server, values: Mapping[str, Level]) -> Command:
        """Return how a built server is started, `values` filling its placeholders."""

    def located(self, words: Sequence[str]) -> list[str]:
        """Return a load generator's command with its first word as the host finds the program."""

    def clients(self, names: Sequence[str], where: str) -> dict[str, str]:
        """Build and check load generators there; return what each says of its version.

        `where` says what needs them. Costs processes. Raises UserError if one is missing or cannot
        run.
        """

    def harness(self) -> dict[str, str]:
        """Return what trials there run on: `toolchain.harness`."""


class Here:
    """This clone."""

    def built(self, server: Server) -> dict:
        """Return what came of its build."""
        return server_build.built(server)

    def command(self, server: Server, values: Mapping[str, Level]) -> Command:
        """Return how it is started."""
        return command(server, values)

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
    made = server_build.built(files.server(maker))
    if not made["ok"]:
        raise clients.failure(name, "could not be built", made["log"], where)


def command(server: Server, values: Mapping[str, Level]) -> Command:
    """Return how a server that is built in this clone is started."""
    words = server_commands.words(server, dict(values))
    folder = server_commands.build_dir(server.name)
    return Command(words, server_commands.environment(server.name), folder)
