"""Lock the Python packages: `./shell python toolchains/python/lock.py`, with network.

It writes one list beside it for each group of pyproject.toml, with all that the group needs: what
the facts read from nixpkgs name at the release named there, the rest as it was at the time of the
pin in flake.lock. So both toolchains hold the same releases. The groups are resolved together, so
that what two of them need is of one release. The lists are for Debian 12's Python and serve
nixpkgs' too.
"""

import datetime
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLACE = ROOT / "build" / "lock"
UV = "uv==0.13.9"
# Debian 12's Python. Neither an index nor a place of this machine gets into a list.
OPTIONS = [
    "--quiet", "--upgrade", "--python-version", "3.11", "--generate-hashes",
    "--no-emit-index-url", "--no-header", "--no-annotate",
]  # fmt: skip
FACTS = ROOT / "tests" / "nix" / "facts.json"

NIX_NAMES = {"pypandoc-binary": "pypandoc"}
"""What nixpkgs calls otherwise: it gives pypandoc its own pandoc, the wheel brings one."""

PROGRAMS = ["snakefmt"]
"""What nixpkgs holds as a program only, not as a module."""


def groups() -> dict[str, list[str]]:
    """Return the names of direct dependencies by group, as pyproject.toml has them."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]


def releases() -> dict[str, str]:
    """Return the release of each Python package that the facts of nixpkgs name, by PyPI's name."""
    facts = json.loads(FACTS.read_text())
    found = {name: fact["version"] for name, fact in facts["python"].items() if fact}
    found |= {name: facts["packages"][name]["version"] for name in PROGRAMS}
    return found | {name: found[nix] for name, nix in NIX_NAMES.items()}


def pinned_on() -> datetime.date:
    """Return the day (UTC) of the nixpkgs that flake.lock pins."""
    node = json.loads((ROOT / "flake.lock").read_text())["nodes"]["nixpkgs"]
    return datetime.datetime.fromtimestamp(node["locked"]["lastModified"], datetime.UTC).date()


def list_of(group: str) -> Path:
    """Return the file with the locked packages of a group."""
    return HERE / f"{group}.txt"


def resolve(names: Iterable[str], constraints: Path, out: Path) -> None:
    """Write what the groups need to `out`, with hashes; each release one that `constraints` has."""
    words = [word for name in names for word in ("--group", f"pyproject.toml:{name}")]
    words += ["--exclude-newer", str(pinned_on()), "--constraint", str(constraints)]
    uv = PLACE / "bin" / "uv"
    subprocess.run([uv, "pip", "compile", *OPTIONS, *words, "-o", out], cwd=ROOT, check=True)


def main() -> None:
    """Lock, with a uv of its own in build/."""
    subprocess.run([sys.executable, "-m", "venv", PLACE], check=True)
    subprocess.run([PLACE / "bin" / "pip", "install", "--quiet", UV], check=True)
    of_nixpkgs, together = PLACE / "of-nixpkgs.txt", PLACE / "together.txt"
    of_nixpkgs.write_text("".join(f"{name}=={at}\n" for name, at in releases().items()))
    resolve(groups(), of_nixpkgs, together)
    for name in groups():
        resolve([name], together, list_of(name))


if __name__ == "__main__":
    main()
