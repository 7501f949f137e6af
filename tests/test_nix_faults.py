"""Faults seeded in the flake, and the check of nix_checks.py that finds each of them."""

import re

import pytest
from nix_checks import CHECKS
from nix_flake import Nix, Refused, copy_flake, start

pytestmark = pytest.mark.nix

HTTPERF = "clients/httperf/httperf.nix"

# (what, file, old text, new text, the check that finds it).
FAULTS = [
    ("a semicolon is lost", "flake.nix", "flake = false;", "flake = false", "parse"),
    ("indented by hand", "nix/tools.nix", "  pkgs.gcc\n", "    pkgs.gcc\n", "formatting"),
    ("a binding that nothing uses", "nix/servers.nix", "  inherit (pkgs) lib;\n",
     "  inherit (pkgs) lib;\n  spare = 1;\n", "dead_code"),
    ("a misspelt package", "nix/tools.nix", "pkgs.iproute2", "pkgs.iproute", "evaluation"),
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
]  # fmt: skip


@pytest.fixture(scope="module")
def nix(tmp_path_factory) -> Nix:
    return start(tmp_path_factory.mktemp("nix"))


@pytest.mark.parametrize(
    ("name", "old", "new", "found_by"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS]
)
def test_fault(name, old, new, found_by, nix, tmp_path):
    tree = copy_flake(tmp_path)
    text = (tree / name).read_text()
    assert old in text, f"{name} no longer holds {old!r}"
    (tree / name).write_text(text.replace(old, new))
    (check,) = [check for check in CHECKS if check.__name__ == found_by]
    with pytest.raises(Refused) as refused:
        check(nix, tree)
    # The user sees a sentence of the checks or Nix's own message, not a crash of Nix.
    assert re.search(r"\w+ \w+", str(refused.value)) and "Traceback" not in str(refused.value)
