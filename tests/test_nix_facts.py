"""The reader of nixpkgs' facts, run on the stand-in: it finds the facts of the stand-in."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from nix_flake import FACTS, PINS, Nix, copy_flake, start

pytestmark = pytest.mark.nix


@pytest.fixture(scope="module")
def nix(tmp_path_factory) -> Nix:
    return start(tmp_path_factory.mktemp("nix"))


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


def test_the_facts_of_the_stand_in_are_found(nix, tree):
    done = read(nix, tree)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr
    assert read(nix, tree, "--write").returncode == 0
    written = (tree / "tests" / "nix" / "facts.json").read_text().splitlines()
    noted = (ROOT / "tests" / "nix" / "facts.json").read_text().splitlines()
    # Only the pin and its date are written again.
    assert [line for line in noted if line not in written] == noted[2:4]


def test_differences_are_named_and_written(nix, tree):
    """The facts are of July; the stand-in, in the place of the pin, of today."""
    newer(nix, tree)
    done = read(nix, tree)
    assert done.returncode == 1, done.stderr
    *others, of_nginx = done.stdout.splitlines()
    assert [line.split(":")[0] for line in others] == ["functions, fetchurl", "packages, wrk"]
    assert others[1].endswith("in facts.json, None in nixpkgs")
    # Another release at another date is a warning.
    assert of_nginx.startswith("warning, of another date (2026-07-14, the pin ")
    assert "): packages, nginx: " in of_nginx
    assert read(nix, tree, "--write").returncode == 0
    path = tree / "tests" / "nix" / "facts.json"
    facts = json.loads(path.read_text())
    assert facts["packages"]["nginx"]["version"] == "9.8.7" and facts["packages"]["wrk"] is None
    assert facts.keys() == FACTS.keys() and facts["python"] == FACTS["python"]
    pins = json.loads((tree / "tests" / "nix" / "pins.json").read_text())
    locked = json.loads((tree / "flake.lock").read_text())["nodes"]["nixpkgs"]["locked"]
    assert pins["inputs"]["nixpkgs"]["narHash"] == locked["narHash"]
    assert pins["hashes"] == PINS["hashes"]
    server = (tree / "servers" / "php-nginx" / "server.toml").read_text()
    assert '\nnix = "PHP 8.4.22 behind nginx 9.8.7"\n' in server
    assert read(nix, tree).returncode == 0
    # A release of the pin's own date is a difference, one of another date only a warning.
    facts["packages"]["nginx"]["version"] = "9.8.6"
    path.write_text(json.dumps(facts))
    done = read(nix, tree)
    assert (done.returncode, done.stdout.split(":")[0]) == (1, "packages, nginx"), done.stderr
    path.write_text(json.dumps(facts | {"date": FACTS["date"]}))
    done = read(nix, tree)
    assert done.returncode == 0 and done.stdout.startswith("warning, "), done.stderr


def test_a_flake_that_cannot_be_evaluated(nix, tree):
    (tree / "nix" / "default.nix").write_text("{ }: misspelt")
    done = read(nix, tree)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "the flake could not be evaluated; Nix gives the reason above" in done.stderr
