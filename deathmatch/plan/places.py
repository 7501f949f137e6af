"""Where each thing that has a name lies; what exists, without reading any of it."""

from pathlib import Path

from deathmatch.plan.root import ROOT

PLACES = {
    "experiment": "experiments/{}.toml",
    "server": "servers/{}/server.toml",
    "dataset": "config/datasets/{}.toml",
    "testbed": "config/testbeds/{}.toml",
    "notebook": "notebooks/{}.md",
}


def path_of(kind: str, name: str, root: Path = ROOT) -> Path:
    """Return the file that defines the `kind` called `name`, whether or not it exists."""
    return root / PLACES[kind].format(name)


def names(kind: str, root: Path = ROOT) -> list[str]:
    """Return the sorted names of everything of that kind in the tree."""
    pattern = path_of(kind, "[!_]*", root).relative_to(root)
    found = root.glob(str(pattern))
    return sorted(p.parent.name if kind == "server" else p.stem for p in found)
