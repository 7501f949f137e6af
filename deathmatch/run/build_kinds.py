"""What kinds of build a server's has: by the registries of its packages, and what it unpacks."""

from collections.abc import Mapping

from deathmatch.plan.server import Server


def largest(server: Server, by_registry: Mapping[str, int], unpacked: int, own: int) -> int:
    """Return the largest of the amounts for the kinds that a server's build has.

    `by_registry` has an amount for each registry of packages, `unpacked` is that of a build that
    unpacks a release of another Debian, `own` that of a build of none of these kinds.
    """
    amounts = [amount for key, amount in by_registry.items() if getattr(server.packages, key, None)]
    build = server.build or ""
    if "cargo build" in build:
        amounts.append(by_registry["cargo"])
    if "toolchains/debian" in build:
        amounts.append(unpacked)
    return max(amounts, default=own)
