"""The reader of nixpkgs' facts, run on the stand-in for nixpkgs: it finds what that is made of."""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import ROOT
from nix_flake import FACTS, PINS, Nix, copy_flake, start

pytestmark = pytest.mark.nix


@pytest.fixture
def nix(tmp_path) -> Nix:
    return start(tmp_path / "nix")


@pytest.fixture
def tree(nix, tmp_path) -> Path:
    """A copy of the project whose inputs are the stand-ins."""
    tree = copy_flake(tmp_path / "tree")
    text = (tree / "flake.nix").read_text()
    for name in PINS["inputs"]:
        pattern = rf"({name}(?:\.| = \{{\s*)url = )\".*?\""
        text, count = re.subn(pattern, rf'\1"path:{nix.stand_ins / name}"', text)
        assert count == 1, name
    (tree / "flake.nix").write_text(text)
    lock(nix, tree)
    return tree


def lock(nix: Nix, tree: Path) -> None:
    """Pin the inputs as they are now."""
    (tree / "flake.lock").unlink()
    nix.run("nix", "flake", "lock", f"path:{tree}")


def read(nix: Nix, tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*nix.sandbox, sys.executable, tree / "nix" / "facts.py", *words],
        env=nix.environment() | {"PATH": os.environ["PATH"]}, capture_output=True, text=True,
    )  # fmt: skip


def newer(nix: Nix, tree: Path) -> None:
    """Pin a nixpkgs with another nginx, without one package, and with one builder changed."""
    path = nix.stand_ins / "nixpkgs" / "facts.json"
    facts = json.loads(path.read_text())
    facts["packages"]["nginx"]["version"] = "9.8.7"
    facts["packages"]["wrk"] = None
    facts["functions"]["fetchurl"].append("another")
    path.write_text(json.dumps(facts))
    lock(nix, tree)


def of_the_pins_date(tree: Path) -> None:
    """Let the noted facts be of the date of the nixpkgs that is pinned."""
    pin = json.loads((tree / "flake.lock").read_text())["nodes"]["nixpkgs"]["locked"]
    path = tree / "tests" / "nix" / "facts.json"
    date = f"{datetime.fromtimestamp(pin['lastModified'], UTC):%Y-%m-%d}"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"date": date}))


def test_what_the_stand_in_is_made_of_is_found(nix, tree):
    done = read(nix, tree)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr
    assert read(nix, tree, "--write").returncode == 0
    written = (tree / "tests" / "nix" / "facts.json").read_text().splitlines()
    noted = (ROOT / "tests" / "nix" / "facts.json").read_text().splitlines()
    # Only where and of which date they were read is said anew.
    assert [line for line in noted if line not in written] == noted[2:4]


def test_each_difference_is_named(nix, tree):
    newer(nix, tree)
    of_the_pins_date(tree)
    done = read(nix, tree)
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "functions, fetchurl", "packages, nginx", "packages, wrk",
    ]  # fmt: skip
    assert lines[2].endswith("in facts.json, None in nixpkgs")


def test_another_release_of_another_date_is_a_warning(nix, tree):
    """The facts are of July; the stand-in, in the place of the pin, of today."""
    newer(nix, tree)
    done = read(nix, tree)
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and len(lines) == 3, done.stdout + done.stderr
    assert lines[2].startswith("warning, of another date (2026-07-14, the pin ")
    assert "): packages, nginx: " in lines[2]
    path = nix.stand_ins / "nixpkgs" / "facts.json"
    facts = json.loads((tree / "tests" / "nix" / "facts.json").read_text())
    facts["packages"]["nginx"]["version"] = "9.8.7"
    path.write_text(json.dumps(facts))
    lock(nix, tree)
    done = read(nix, tree)
    assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stdout + done.stderr


def test_what_differs_is_written(nix, tree):
    newer(nix, tree)
    assert read(nix, tree, "--write").returncode == 0
    facts = json.loads((tree / "tests" / "nix" / "facts.json").read_text())
    assert facts["packages"]["nginx"]["version"] == "9.8.7" and facts["packages"]["wrk"] is None
    assert facts.keys() == FACTS.keys() and facts["python"] == FACTS["python"]
    pins = json.loads((tree / "tests" / "nix" / "pins.json").read_text())
    locked = json.loads((tree / "flake.lock").read_text())["nodes"]["nixpkgs"]["locked"]
    assert pins["inputs"]["nixpkgs"]["narHash"] == locked["narHash"]
    assert pins["hashes"] == PINS["hashes"]
    server = (tree / "servers" / "php-nginx" / "server.toml").read_text()
    assert '\nnix = "PHP 8.4.22 behind nginx 9.8.7"\n' in server
    assert read(nix, tree).returncode == 0


def test_a_flake_that_cannot_be_evaluated(nix, tree):
    (tree / "nix" / "default.nix").write_text("{ }: misspelt")
    done = read(nix, tree)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "the flake could not be evaluated; Nix gives the reason above" in done.stderr
