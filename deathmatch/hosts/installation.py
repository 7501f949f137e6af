"""The project's files on a host: an interface that `builds.clone` and `builds.copy` implement."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from deathmatch.hosts.host import Host
from deathmatch.plan.server import Server
from deathmatch.plan.spec import Level
from deathmatch.plan.testbed import Side


@dataclass(frozen=True)
class Command:
    """How a server is started on a host: words, environment and folder, as the host has them."""

    words: list[str]
    environment: dict[str, str]
    folder: Path


class Installation(Protocol):
    """The project on a host."""

    def built(self, server: Server) -> dict:
        """Return the record of the server's build there, building it first if that is due.

        As `server_build.built`.
        """

    def command(self, server: Server, values: Mapping[str, Level]) -> Command:
        """Return how a built server is started, `values` filling its placeholders."""

    def located(self, words: Sequence[str]) -> list[str]:
        """Return a load generator's command with its first word as the host finds the program.

        Another word that names a file of the project names the installation's.
        """

    def clients(self, names: Sequence[str], where: str) -> dict[str, str]:
        """Build and check load generators there; return {name: version line}.

        `where` says what needs them. Costs processes. Raises UserError if one is missing or cannot
        run.
        """

    def harness(self) -> dict[str, str]:
        """Return the tools that trials there run on: `toolchain.harness`."""


Install = Callable[[Host, Side], Installation]
"""Brings the project to a host, whose side of the testbed's file is given: `builds.clone.on`."""
