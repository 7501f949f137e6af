"""Write requirements.txt anew: `./shell python config/lock.py`, with network.

It locks the groups of pyproject.toml and all that they need: what the facts read from nixpkgs
name at the release named there, the rest as it was at the time of the pin in flake.lock. So both
toolchains hold the same releases. The list is for Debian 12's Python and serves nixpkgs' too.
"""

import datetime
import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FACTS = ROOT / "tests" / "nix" / "facts.json"
LOCK = ROOT / "requirements.txt"
UV = "uv==0.13.9"

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


def main() -> None:
    """Lock, with a uv of its own in build/."""
    home = ROOT / "build" / "lock"
    subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
    subprocess.run([home / "bin" / "pip", "install", "--quiet", UV], check=True)
    constraints = home / "constraints.txt"
    constraints.write_text("".join(f"{name}=={at}\n" for name, at in releases().items()))
    subprocess.run(
        [
            home / "bin" / "uv", "pip", "compile", "--quiet", "--upgrade",
            "--python-version", "3.11", "--generate-hashes",
            "--no-emit-index-url", "--no-header", "--no-annotate",
            "--exclude-newer", str(pinned_on()), "--constraint", constraints,
            *(word for group in groups() for word in ("--group", f"pyproject.toml:{group}")),
            "--output-file", LOCK,
        ],
        cwd=ROOT, check=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
