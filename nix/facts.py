"""Compare tests/nix/facts.json with the flake's own nixpkgs: `python3 nix/facts.py [--write]`.

Needs Nix, and network for nixpkgs. Prints what differs, and ends with 1 if anything does. Where the
facts were read from a nixpkgs of another date than the pin's, another release is a warning only.
With `--write` it puts what nixpkgs holds into that file, the pins of flake.lock into
tests/nix/pins.json, and new releases into `release.nix` of the servers' own files: run it so after
`nix flake update`.
"""

import argparse
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FACTS = ROOT / "tests" / "nix" / "facts.json"
PINS = ROOT / "tests" / "nix" / "pins.json"
COMMAND = [
    "nix", "--extra-experimental-features", "nix-command flakes", "eval", "--json",
    ".#legacyPackages.x86_64-linux.facts",
]  # fmt: skip


def evaluated() -> dict:
    """Return what nix/facts.nix says of the flake's nixpkgs, by kind; exit if Nix fails."""
    done = subprocess.run(COMMAND, cwd=ROOT, stdout=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit("nix/facts.py: the flake could not be evaluated; Nix gives the reason above")
    return json.loads(done.stdout)


def differences(noted: dict, found: dict) -> tuple[list[str], list[str]]:
    """Return a line for each fact that nixpkgs holds otherwise than it is noted.

    Those of a release alone come second: the date of a nixpkgs tells its packages' releases.
    """
    differing: tuple[list[str], list[str]] = ([], [])
    for kind, facts in found.items():
        for name, fact in facts.items():
            known = noted[kind][name]
            if known != fact:
                said = f"{kind}, {name}: {known} in {FACTS.name}, {fact} in nixpkgs"
                differing[_without_release(known) == _without_release(fact)].append(said)
    return differing


def _without_release(fact: object) -> object:
    """Return a fact without the version of a package."""
    return {**fact, "version": ""} if isinstance(fact, dict) else fact


def pinned_date() -> str:
    """Return the date of the flake's nixpkgs, in UTC, as YYYY-MM-DD."""
    return f"{datetime.fromtimestamp(pins()['nixpkgs']['lastModified'], UTC):%Y-%m-%d}"


def new_versions(noted: dict, found: dict) -> dict[str, str]:
    """Return the new version for each old one that leads to one new version."""
    new: dict[str, set[str]] = {}
    for kind in ("packages", "python", "perl", "ruby"):
        for name, fact in found[kind].items():
            if isinstance(noted[kind][name], dict) and isinstance(fact, dict):
                new.setdefault(noted[kind][name]["version"], set()).add(fact["version"])
    return {
        old: min(versions)
        for old, versions in new.items()
        if versions != {old} and len(versions) == 1
    }


def with_new_releases(text: str, new: dict[str, str]) -> str:
    """Return a server's file with new versions in the line `nix` of its table `release`."""
    table = re.search(r"^\[release\]\n(?:.+\n)*", text, re.M)
    if table is None:
        return text
    line = re.search(r'^nix = ".*"$', table[0], re.M)
    if line is None:
        return text
    renewed = re.sub(r"\d[\w.+]*", lambda number: new.get(number[0], number[0]), line[0])
    return text.replace(table[0], table[0].replace(line[0], renewed))


def pins() -> dict:
    """Return what flake.lock pins each input to, in the form of tests/nix/pins.json."""
    nodes = json.loads((ROOT / "flake.lock").read_text())["nodes"]
    keys = ("rev", "narHash", "lastModified")
    return {
        name: {key: node["locked"][key] for key in keys if key in node["locked"]}
        for name, node in nodes.items()
        if "locked" in node
    }


def write(noted: dict, found: dict) -> None:
    """Write the facts, the pins and the servers' releases."""
    tree = "Read from the two nixpkgs that flake.lock pins; Haskell's libraries were not asked for."
    read = {"tree": tree, "date": pinned_date()}
    text = json.dumps(noted | found | read, indent=1, ensure_ascii=False)
    FACTS.write_text(text + "\n")
    recorded = json.loads(PINS.read_text()) | {"inputs": pins()}
    PINS.write_text(json.dumps(recorded, indent=2) + "\n")
    new = new_versions(noted, found)
    for path in [*ROOT.glob("servers/*/server.toml"), *ROOT.glob("servers/releases/*/server.toml")]:
        path.write_text(with_new_releases(path.read_text(), new))


def main() -> int:
    """Compare; write where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write what nixpkgs holds")
    given = parser.parse_args()
    noted, found = json.loads(FACTS.read_text()), evaluated()
    wrong, dated = differences(noted, found)
    if noted["date"] == pinned_date():
        wrong, dated = sorted(wrong + dated), []
    print(*wrong, sep="\n", end="\n" if wrong else "")
    for line in dated:
        print(f"warning, of another date ({noted['date']}, the pin {pinned_date()}): {line}")
    if given.write:
        write(noted, found)
        return 0
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
