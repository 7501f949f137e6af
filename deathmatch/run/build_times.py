"""How long builds will take: as an earlier build of the server on this machine, or as its kind."""

import json
from collections.abc import Iterable

from deathmatch.builds import nix, server_build, server_commands
from deathmatch.plan.server import Server

REGISTRY_S = {"cargo": 90, "go": 30, "npm": 10, "maven": 15, "pypi": 10}
"""Rough guesses for a build on two idle cores, by the registry of its packages.

They serve until a build has been recorded here, which then counts instead."""

UNPACKED_S = 15
"""A build that unpacks a release of another Debian."""

OWN_S = 5
"""A build of a server's own sources, which also installs Debian packages."""

SLOW_S = 300
"""A build that `slow_build` says takes minutes."""


def seconds(server: Server) -> float:
    """Return how long the server's build will take if nothing else is built meanwhile."""
    measured_s = _measured_s(server)
    if measured_s is not None:
        return measured_s
    if server.slow_build:
        return SLOW_S
    guesses_s = [s for key, s in REGISTRY_S.items() if getattr(server.packages, key, None)]
    build = server.build or ""
    if "cargo build" in build:
        guesses_s.append(REGISTRY_S["cargo"])
    if "toolchains/debian" in build:
        guesses_s.append(UNPACKED_S)
    return max(guesses_s, default=OWN_S)


def _measured_s(server: Server) -> float | None:
    """Return how long its last build took, of whichever sources; None if that is unknown."""
    folder = server_commands.build_dir(server.name)
    for name in (server_build.RECORD, server_build.GOOD):
        try:
            return json.loads((folder / name).read_text())["wall_us"] / 1e6
        except (FileNotFoundError, KeyError, ValueError):
            continue
    return None


def together_s(servers: Iterable[Server]) -> float:
    """Return how long all of them take, as `workflow/build.smk` orders them: the longest first.

    Two are built at a time; with Nix, one.
    """
    ends_s = [0.0] if nix.chosen() else [0.0, 0.0]
    for build_s in sorted(map(seconds, servers), reverse=True):
        ends_s[ends_s.index(min(ends_s))] += build_s
    return max(ends_s)
