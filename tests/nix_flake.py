"""A real Nix without network, and the project's flake as it evaluates against the stand-in.

`tests/nix/` holds `facts.json`, what evaluation of the real nixpkgs found of each attribute and
builder, and a stand-in made of it: what the facts do not name does not exist, and an argument that
they do not list is refused.
"""

import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from conftest import copy_tree

from deathmatch.plan.paths import ROOT

FIXTURES = ROOT / "tests" / "nix"
PINS = json.loads((FIXTURES / "pins.json").read_text())
FACTS = json.loads((FIXTURES / "facts.json").read_text())
SYSTEMS = ["aarch64-linux", "x86_64-linux"]
DARWIN = "aarch64-darwin"


class Refused(AssertionError):
    """A fault that a check found."""


@dataclass
class Nix:
    """Nix with a store, a configuration and an empty home of its own."""

    home: Path
    sandbox: list[str]
    stand_ins: Path
    known: dict[Path, dict] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Return the variables that keep Nix within `home`, without any other configuration."""
        folders = {"STORE": "store", "STATE": "var", "LOG": "log", "CONF": "etc"}
        settings = {
            "experimental-features": "nix-command flakes",
            "substituters": "",
            "flake-registry": "",
            "build-users-group": "",
            "sandbox": "false",
            "fsync-metadata": "false",
        }
        return {
            "HOME": str(self.home),
            "NIX_CONFIG": "".join(f"{key} = {value}\n" for key, value in settings.items()),
            **{f"NIX_{name}_DIR": str(self.home / to) for name, to in folders.items()},
        }

    def run(self, *words: str) -> str:
        """Return the output of a Nix command run without any network; Refused if it fails."""
        done = subprocess.run(
            [*self.sandbox, *words],
            env=self.environment() | {"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise Refused(done.stderr)
        return done.stdout

    def flake(self, verb: str, target: str, *words: str, prefix: str = "") -> str:
        """Run `nix VERB` on a flake, inputs of the study's replaced by the stand-ins.

        `prefix` is the path of inputs that leads to the study's flake from that one.
        """
        inputs = [
            word
            for name in PINS["inputs"]
            for word in ("--override-input", prefix + name, f"path:{self.stand_ins / name}")
        ]
        words = (*verb.split(), target, *words, "--no-write-lock-file", *inputs)
        return self.run("nix", *words)

    def outputs(self, tree: Path) -> dict:
        """Return what the checks read: {output: {system: {name: {attribute: ...}}}}.

        One evaluation serves all checks of a tree.
        """
        if tree not in self.known:
            target = f"path:{self.stand_ins / 'outputs'}#all"
            study = ("--override-input", "study", f"path:{tree}")
            text = self.flake("eval --json", target, *study, prefix="study/")
            self.known[tree] = json.loads(text)
        return self.known[tree]


def made(out: Path, script: Path, *lists: Path) -> Path:
    """Return the folder `out`, made by `script OUT` unless it is of this script and these lists."""
    made_from = b"".join(path.read_bytes() for path in (script, *lists))
    # The programs in it may hold its path.
    stamp = f"{out} {hashlib.sha256(made_from).hexdigest()}"
    out.parent.mkdir(exist_ok=True)
    with out.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = out / "stamp"
        if not known.exists() or known.read_text() != stamp:
            done = subprocess.run([script, out], capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
            known.write_text(stamp)
    return out


def checkers() -> str:
    """Return the words of PATH that find the checkers of Nix files, installed if need be."""
    path = os.environ["PATH"]
    if all(shutil.which(name) for name in ("deadnix", "nixfmt")):
        return path
    return f"{made(ROOT / 'build' / 'nix-tools', FIXTURES / 'install')}/bin:{path}"


def _sandbox() -> list[str]:
    """Return the words that run a command without a network, as root of its namespaces."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    kinds = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return ["setpriv", "--pdeathsig", "KILL", "--", "unshare", *user, *kinds, "--"]


def start(home: Path) -> Nix:
    """Return a Nix with a store and the stand-ins, each with the facts: an input holds no more."""
    assert shutil.which("nix"), "install Debian's package nix-bin, as ./shell pytest does"
    stand_ins = home / "stand-ins"
    for name in PINS["inputs"]:
        shutil.copytree(FIXTURES / name, stand_ins / name)
        shutil.copy(FIXTURES / "facts.json", stand_ins / name)
    shutil.copytree(FIXTURES / "outputs", stand_ins / "outputs")
    nix = Nix(home, _sandbox(), stand_ins)
    # Two commands that both found no database would disturb each other.
    nix.run("nix-store", "--init")
    return nix


def copy_flake(to: Path) -> Path:
    """Copy the project without its measurements, whose folders the paper's recipe needs."""
    copy_tree(to)
    (to / "data" / "reference").mkdir()
    return to


def require(condition: bool, what: str) -> None:
    if not condition:
        raise Refused(what)


def same(found, wanted, what: str) -> None:
    found, wanted = set(found), set(wanted)
    require(
        found == wanted,
        f"{what}: missing {sorted(wanted - found)}, too many {sorted(found - wanted)}",
    )


@functools.cache
def _inputs(derivation: Path) -> list[Path]:
    """Return the derivations that one names as its inputs."""
    found = re.findall(r'\("([^"]+\.drv)",\[', derivation.read_text())
    return [Path(path) for path in found]


def closure(derivation: str) -> list[Path]:
    """Return the derivations that one is made from, itself included."""
    found, left = set(), [Path(derivation)]
    while left:
        if (one := left.pop()) not in found:
            found.add(one)
            left += _inputs(one)
    return sorted(found)


@functools.cache
def uses(derivation: Path) -> dict[str, str]:
    """Return the variable `uses` of a derivation's file, where the stand-in keeps its arguments."""
    text = re.search(r'\("uses",("(?:[^"\\]|\\.)*")\)', derivation.read_text())[1]
    return json.loads(json.loads(text))
