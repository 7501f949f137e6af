"""Lock the Python packages: `./shell python toolchains/python/lock.py`, with network.

It writes a list next to this file for each group of pyproject.toml, with all packages that the
group needs. Packages in the facts of nixpkgs have the release there, so that both toolchains have
the same releases but for OTHER_RELEASES; others have the latest release at the time of the pin in
flake.lock. The groups are resolved together, so that a package has the same release in all of them.
The lists are for Debian 12's Python, and also work for that of nixpkgs.
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
# For Debian 12's Python; the lists have no addresses of an index and no paths of this machine.
OPTIONS = [
    "--quiet", "--upgrade", "--python-version", "3.11", "--generate-hashes",
    "--no-emit-index-url", "--no-header", "--no-annotate",
]  # fmt: skip
FACTS = ROOT / "tests" / "nix" / "facts.json"

NIX_NAMES = {"pypandoc-binary": "pypandoc"}
"""{PyPI's name: nixpkgs' name}: nixpkgs gives pypandoc its pandoc, while the wheel includes one."""

OTHER_RELEASES = {"ipykernel": "6.31.0"}
"""{name: release} in place of the one in nixpkgs, for the reasons in tests/test_lock.py."""

PROGRAMS = ["snakefmt"]
"""Packages that nixpkgs has only as programs, not as modules."""


def groups() -> dict[str, list[str]]:
    """Return {group: names of its direct dependencies} of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]


def releases() -> dict[str, str]:
    """Return the release of each Python package in the facts of nixpkgs, by PyPI's name."""
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
    """Write the packages of groups to `out`, with hashes and the releases in `constraints`."""
    words = [word for name in names for word in ("--group", f"pyproject.toml:{name}")]
    words += ["--exclude-newer", str(pinned_on()), "--constraint", str(constraints)]
    uv = PLACE / "bin" / "uv"
    subprocess.run([uv, "pip", "compile", *OPTIONS, *words, "-o", out], cwd=ROOT, check=True)


def main() -> None:
    """Lock all groups, with a uv in build/."""
    subprocess.run([sys.executable, "-m", "venv", PLACE], check=True)
    subprocess.run([PLACE / "bin" / "pip", "install", "--quiet", UV], check=True)
    of_nixpkgs, together = PLACE / "of-nixpkgs.txt", PLACE / "together.txt"
    of_nixpkgs.write_text(
        "".join(f"{name}=={at}\n" for name, at in (releases() | OTHER_RELEASES).items())
    )
    resolve(groups(), of_nixpkgs, together)
    for name in groups():
        resolve([name], together, list_of(name))


if __name__ == "__main__":
    main()
