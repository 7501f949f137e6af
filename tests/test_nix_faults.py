"""Faults seeded in the flake, and the check of `test_nix.py` that finds each of them first."""

import re
from pathlib import Path

import pytest
from conftest import copy_tree
from test_nix import CHECKS, Nix, Refused, start

pytestmark = pytest.mark.once

# (what, file, old text, new text, the first check that finds it); no old text: write the file;
# no new text: remove it.
FAULTS = [
    ("a semicolon is lost", "flake.nix", "flake = false;", "flake = false", "parse"),
    ("a bracket is lost", "nix/era.nix", 'paths = [\n', "paths =\n", "parse"),
    ("indented by hand", "nix/tools.nix", "  pkgs.gcc\n", "    pkgs.gcc\n", "formatting"),
    ("a binding that nothing uses", "nix/servers.nix", "  inherit (pkgs) lib;\n",
     "  inherit (pkgs) lib;\n  spare = 1;\n", "dead_code"),
    ("an argument that nothing uses", "nix/servers/go.nix", "{ pkgs, ... }:",
     "{ pkgs, erlang, ... }:", "dead_code"),
    ("a misspelt package", "nix/tools.nix", "pkgs.iproute2", "pkgs.iproute", "evaluation"),
    ("a name that nixpkgs dropped", "nix/tools.nix", "pkgs.poppler-utils", "pkgs.poppler_utils",
     "evaluation"),
    ("a release that the pin lacks", "nix/toolchain.nix", "erlang_28", "erlang_26", "evaluation"),
    ("a release that the old pin lacks", "nix/era.nix", "pkgs-2014.erlangR15B03",
     "pkgs-2014.erlangR15B04", "evaluation"),
    ("a misspelt Python module", "nix/tools.nix", "papermill", "papermil", "evaluation"),
    ("a misspelt argument of a server's list", "nix/servers/go.nix", "{ pkgs, ... }: [ pkgs.",
     "{ pkg, ... }: [ pkg.", "names"),
    ("a program where a Python module must be", "nix/servers/tornado.nix",
     "packages: [ packages.tornado ]", "_: [ pkgs.yaws ]", "evaluation"),
    ("a misspelt argument of a builder", "nix/httperf.nix", "configureFlags", "configureFlag",
     "evaluation"),
    ("an argument that is missing", "nix/servers.nix", "paths = list", "path = list",
     "evaluation"),
    ("a package instead of a list of them", "nix/servers/yucan.nix", "[ erlang ]", "erlang",
     "evaluation"),
    ("a hash that is too short", "nix/httperf.nix", "bf1c\"", "bf1\"", "evaluation"),
    ("a mirror that nixpkgs does not know", "nix/httperf.nix", "mirror://debian/",
     "mirror://debain/", "evaluation"),
    ("a flag that would be split at its space", "nix/httperf.nix", '"CPPFLAGS=-D_GNU_SOURCE"',
     '"CPPFLAGS=-D_GNU_SOURCE -g"', "evaluation"),
    ("a patch that is not there", "nix/httperf.nix", "deathmatch.patch", "deathmatch.diff",
     "evaluation"),
    ("wrapProgram without makeWrapper", "nix/erlang-with.nix",
     "  nativeBuildInputs = [ pkgs.makeWrapper ];\n", "", "evaluation"),
    ("two packages with one program", "nix/servers/yucan.nix", "{ erlang, ... }: [ erlang ]",
     "{ erlang, erlangWith, ... }:\n[\n  erlang\n  (erlangWith [ ])\n]", "evaluation"),
    ("another branch than the lock's", "flake.nix", "nixos-unstable", "nixos-25.11", "lock"),
    ("a lock moved without its record", "flake.lock", "xnJJk+ct+D2", "ynJJk+ct+D2", "lock"),
    ("an input that the lock lacks", "flake.lock", '"nixpkgs-2014": {', '"nixpkgs-2013": {',
     "evaluation"),
    ("a server without its Nix file", "nix/servers/tornado.nix", None, None, "names"),
    ("a misspelt attribute in a server's folder", "servers/nginx/server.toml", 'nix = ["nginx"]',
     'nix = ["ngnix"]', "evaluation"),
    ("a folder that names no packages", "servers/nginx/server.toml", 'nix = ["nginx"]\n', "",
     "names"),
    ("packages named twice", "nix/servers/nginx.nix", "", "{ pkgs, ... }: [ pkgs.nginx ]\n",
     "names"),
    ("a folder's packages without its program", "servers/null/server.toml", 'nix = ["gcc"]',
     'nix = ["nginx"]', "programs"),
    ("a Nix file without its server", "nix/servers/yucann.nix", "",
     "{ erlang, ... }: [ erlang ]\n", "names"),
    # The eleven that the stand-in, when it was more generous than nixpkgs, let pass:
    ("a builder that nixpkgs removed", "nix/erlang-libs.nix", "beam.buildRebar3 {",
     "beam.buildHex {", "evaluation"),
    ("an argument of fetchHex that it never had", "nix/erlang-libs.nix", "pkg = name;",
     "name = name;", "evaluation"),
    ("an argument of a package that it no longer takes", "nix/erlang-libs.nix",
     "pkgs.yaws.override { beamPackages = beam; }", "pkgs.yaws.override { inherit (beam) erlang; }",
     "evaluation"),
    ("a gem that nixpkgs never had", "nix/servers/sinatra-thin.nix", "",
     "{ pkgs, ... }: [ (pkgs.ruby.withPackages (gems: [ gems.thin ])) ]\n", "evaluation"),
    ("a release that the old pin has by another name", "nix/era.nix", "of pkgs-2014.erlang;",
     "of pkgs-2014.erlangR16B02;", "evaluation"),
    ("a load generator forgotten", "nix/tools.nix", '    (client "roundtrip")\n', "", "programs"),
    ("a load generator that its server does not bring", "nix/servers/ws-null.nix",
     "{ pkgs, wsload, ... }:\n[\n  wsload\n", "{ pkgs, ... }:\n[\n", "clients"),
    ("a paper that is taken for current", "nix/paper.nix", " --forceall", "", "paper"),
    ("a library of the system under Nix", "servers/yaws/server.toml", "-pa ebin lib/yaws/ebin",
     "-pa ebin /usr/lib/yaws/ebin", "debian_paths"),
    ("every server in the first shell", "nix/default.nix",
     'default = shell tools.measure (variables "nix");',
     'default = furnished "nix" tools.measure confirmed;', "environment"),
    ("a hundred crates in the first shell", "nix/tools.nix", '    (client "roundtrip")\n',
     '    (client "roundtrip")\n    (client "wsload")\n', "light"),
    ("a shell for macOS with what it lacks", "nix/darwin.nix", ".paper", ".measure", "evaluation"),
    ("a server that cannot be built in everyone's shell", "nix/default.nix", '    "misultin"\n', "",
     "names"),
    ("a system dropped", "flake.nix", '        "aarch64-linux"\n', "", "evaluation"),
    ("a shell of the old pin dropped", "nix/era.nix",
     "  era-R16B02 = of pkgs-2014.erlang;\n", "", "names"),
    ("a server without a program of its own", "nix/servers/yucan.nix",
     "{ erlang, ... }: [ erlang ]", "{ pkgs, ... }: [ pkgs.gcc ]", "programs"),
    ("a program of the runner forgotten", "nix/tools.nix", "    pkgs.procps\n", "", "programs"),
    ("a Python module forgotten", "nix/tools.nix", "      psutil\n", "", "modules"),
    ("a server's Python module forgotten", "nix/servers/tornado.nix", "packages.tornado",
     "packages.twisted", "modules"),
    ("a misspelt variable of the shells", "nix/default.nix", "DEATHMATCH_SERVERS",
     "DEATHMATCH_SERVER", "environment"),
    ("a server linked under another name", "nix/default.nix", "{ ${name} = server; }",
     '{ "a${name}" = server; }', "environment"),
    ("another well-formed hash", "nix/erlang-libs.nix", "4114e51f", "4114e51e", "hashes"),
    ("a placeholder without its reason", "nix/misultin.nix",
     "    # The tag is named in the project's README; no public place that we found records a hash "
     "of it.\n", "", "hashes"),
    ("httperf built with other flags", "nix/httperf.nix", " -U_FORTIFY_SOURCE", "", "httperf"),
    # What only a build would find:
    ("a tag that does not exist", "nix/misultin.nix", "refs/tags/misultin-", "refs/tags/v", None),
    ("a misspelt command in a phase", "nix/httperf.nix", "install -D", "instal -D", None),
    ("a misspelt command in a build", "nix/roundtrip.nix", "sh ./build", "sh ./buidl", None),
    ("a library put where Erlang does not look", "nix/misultin.nix",
     'mkdir -p "$out/lib/erlang/lib', 'mkdir -p "$out/lib/erlang', None),
]  # fmt: skip


@pytest.fixture(scope="module")
def nix(tmp_path_factory) -> Nix:
    return start(tmp_path_factory.mktemp("nix"))


def seed(tree: Path, name: str, old: str | None, new: str | None) -> None:
    path = tree / name
    if new is None:
        path.unlink()
    elif not old:
        path.write_text(new)
    else:
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


@pytest.mark.parametrize("what, name, old, new, found_by", FAULTS, ids=[f[0] for f in FAULTS])
def test_fault(what, name, old, new, found_by, nix, tmp_path):
    tree = copy_tree(tmp_path / "tree")
    seed(tree, name, old, new)
    assert first_refusal(nix, tree) == found_by
