"""Which code a rule uses: its own package and those that this may import."""

from pathlib import Path

PACKAGES = (
    "agent",
    "load",
    "plan",
    "checks",
    "hosts",
    "builds",
    "capacity_search",
    "quantities",
    "data",
    "measure",
    "instruments",
    "analysis",
    "paper",
    "run",
)
"""The packages in the order in which data flows: each may import those before it."""

ORDER = ("errors", *PACKAGES, "cli")
"""The same with the two modules beside them, the first and the last."""


def of(package: str, root: Path = Path()) -> list[str]:
    """Return the source files, relative to `root`, of a package and of all before it, sorted.

    A rule names them as its input: a change of a later package then makes nothing again.
    """
    used = PACKAGES[: PACKAGES.index(package) + 1]
    files = [root / "deathmatch" / "errors.py"]
    files += [file for name in used for file in (root / "deathmatch" / name).rglob("*.py")]
    return sorted(str(file.relative_to(root)) for file in files)
