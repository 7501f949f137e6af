"""Faults seeded in the flake, and the check of nix_checks.py that finds each of them first."""

import re
import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from nix_checks import CHECKS
from nix_flake import Nix, Refused, copy_flake, start

pytestmark = pytest.mark.nix

HTTPERF = "clients/httperf/httperf.nix"

# (what, file, old text, new text, the first check that finds it).
FAULTS = [
    ("a semicolon is lost", "flake.nix", "flake = false;", "flake = false", "parse"),
    ("indented by hand", "nix/tools.nix", "  pkgs.gcc\n", "    pkgs.gcc\n", "formatting"),
    ("a binding that nothing uses", "nix/servers.nix", "  inherit (pkgs) lib;\n",
     "  inherit (pkgs) lib;\n  spare = 1;\n", "dead_code"),
    ("a misspelt package", "nix/tools.nix", "pkgs.iproute2", "pkgs.iproute", "evaluation"),
    ("a release that the old pin lacks", "nix/era.nix", "pkgs-2014.erlangR15B03",
     "pkgs-2014.erlangR15B04", "evaluation"),
    ("a misspelt Python module", "pyproject.toml", "papermill", "papermil", "evaluation"),
    ("a misspelt argument of a server's list", "nix/servers/perl-ev-ws.nix", "pkgs", "pkgz",
     "names"),
    ("a hash that is too short", HTTPERF, "bf1c\"", "bf1\"", "evaluation"),
    ("another branch than the lock's", "flake.nix", "nixos-unstable", "nixos-25.11", "lock"),
    ("a folder's packages without its program", "servers/null/server.toml", 'nix = ["gcc"]',
     'nix = ["nginx"]', "programs"),
    ("load generators forgotten", "nix/default.nix", "clients = clients.shell;", "clients = [ ];",
     "clients"),
    ("a library of the system under Nix", "servers/yaws/server.toml", "-pa ebin lib/yaws/ebin",
     "-pa ebin /usr/lib/yaws/ebin", "debian_paths"),
    ("a release that Nix does not give", "servers/releases/cowboy-otp29/server.toml",
     'nix = "Cowboy 2.13.0', 'nix = "Cowboy 2.20.0', "releases"),
    ("every server in the first shell", "nix/default.nix",
     'default = shell tools.measure (variables "nix");',
     'default = furnished "nix" tools.measure current;', "environment"),
    ("a hundred crates in the first shell", "nix/clients.nix",
     "those (client: !(client ? built_by));", "builtins.attrValues packages;", "light"),
    ("a desktop with every Erlang server", "nix/toolchain.nix", "pkgs.beam_minimal", "pkgs.beam",
     "no_desktop"),
    ("a compiler of another age than the Python's", "servers/releases/tornado-3.2/server.toml",
     "pkgs-2022.gcc", "gcc", "compilers"),
    ("a program that npm fetches for one system", "servers/node-ws/package-lock.json",
     '"node_modules/ws"', '"node_modules/ws-linux-x64"', "prebuilt"),
    ("a Python module forgotten", "pyproject.toml", '  "psutil",\n', "", "modules"),
    ("another well-formed hash", "nix/erlang-libs.nix", "4114e51f", "4114e51e", "hashes"),
    ("httperf built with other flags", HTTPERF, " -U_FORTIFY_SOURCE", "", "httperf"),
    # What only a build would find:
    ("a misspelt command in a phase", HTTPERF, "install -D", "instal -D", None),
]  # fmt: skip


@pytest.fixture(scope="module")
def nix(tmp_path_factory) -> Nix:
    return start(tmp_path_factory.mktemp("nix"))


def seed(tree: Path, name: str, old: str, new: str) -> None:
    path = tree / name
    text = path.read_text()
    assert old in text, f"{name} no longer holds {old!r}"
    path.write_text(text.replace(old, new))


def first_refusal(nix: Nix, tree: Path) -> str | None:
    """Return the name of the first check that refuses the tree."""
    for check in CHECKS:
        try:
            check(nix, tree)
        except Refused as error:
            # What the user sees is a sentence of ours or Nix's own message, not a crash of Nix.
            assert re.search(r"\w+ \w+", str(error)) and "Traceback" not in str(error)
            return check.__name__
    return None


@pytest.fixture(scope="module")
def found(nix, request, tmp_path_factory) -> dict[str, Future]:
    """What refuses each fault that this run asks for, by the fault: two are looked at at a time."""
    trees = tmp_path_factory.mktemp("faults")

    def refusal(number: int) -> str | None:
        _, name, old, new, _ = FAULTS[number]
        tree = copy_flake(trees / str(number))
        seed(tree, name, old, new)
        try:
            return first_refusal(nix, tree)
        finally:
            shutil.rmtree(tree)

    asked = [item.callspec.indices["what"] for item in request.session.items
             if item.path == request.path and "what" in item.callspec.indices]  # fmt: skip
    with ThreadPoolExecutor(max_workers=2) as pool:
        return {FAULTS[number][0]: pool.submit(refusal, number) for number in asked}


@pytest.mark.parametrize(
    "what, found_by", [(f[0], f[-1]) for f in FAULTS], ids=[f[0] for f in FAULTS]
)
def test_fault(what, found_by, found):
    assert found[what].result() == found_by
