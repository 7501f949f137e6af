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

# (what, file, old text, new text, the first check that finds it); no old text: write the file;
# no new text: remove it.
FAULTS = [
    ("a semicolon is lost", "flake.nix", "flake = false;", "flake = false", "parse"),
    ("a bracket is lost", "nix/era.nix", 'paths = [\n', "paths =\n", "parse"),
    ("indented by hand", "nix/tools.nix", "  pkgs.gcc\n", "    pkgs.gcc\n", "formatting"),
    ("a binding that nothing uses", "nix/servers.nix", "  inherit (pkgs) lib;\n",
     "  inherit (pkgs) lib;\n  spare = 1;\n", "dead_code"),
    ("an argument that nothing uses", "nix/servers/perl-ev-ws.nix", "{ pkgs, ... }:",
     "{ pkgs, erlang, ... }:", "dead_code"),
    ("a misspelt package", "nix/tools.nix", "pkgs.iproute2", "pkgs.iproute", "evaluation"),
    ("a name that nixpkgs dropped", "nix/tools.nix", "pkgs.poppler-utils", "pkgs.poppler_utils",
     "evaluation"),
    ("a release that the pin lacks", "nix/toolchain.nix", "erlang_28", "erlang_26", "evaluation"),
    ("a release that the old pin lacks", "nix/era.nix", "pkgs-2014.erlangR15B03",
     "pkgs-2014.erlangR15B04", "evaluation"),
    ("a misspelt Python module", "pyproject.toml", "papermill", "papermil", "evaluation"),
    ("a misspelt argument of a server's list", "nix/servers/perl-ev-ws.nix", "pkgs", "pkgz",
     "names"),
    ("a program where a Python module must be", "nix/servers/perl-ev-ws.nix",
     "packages.EV", "pkgs.yaws", "evaluation"),
    ("a misspelt argument of a builder", HTTPERF, "configureFlags", "configureFlag",
     "evaluation"),
    ("an argument that is missing", "nix/servers.nix", "paths = list", "path = list",
     "evaluation"),
    ("a package instead of a list of them", "servers/yucan/server.toml", 'nix = ["erlang"]',
     'nix = "erlang"', "evaluation"),
    ("a hash that is too short", HTTPERF, "bf1c\"", "bf1\"", "evaluation"),
    ("a mirror that nixpkgs does not know", HTTPERF, "mirror://debian/",
     "mirror://debain/", "evaluation"),
    ("a flag that would be split at its space", HTTPERF, '"CPPFLAGS=-D_GNU_SOURCE"',
     '"CPPFLAGS=-D_GNU_SOURCE -g"', "evaluation"),
    ("a patch that is not there", HTTPERF, "deathmatch.patch", "deathmatch.diff",
     "evaluation"),
    ("wrapProgram without makeWrapper", "nix/erlang-with.nix",
     "  nativeBuildInputs = [ pkgs.makeWrapper ];\n", "", "evaluation"),
    ("two packages with one program", "servers/yucan/server.toml", 'nix = ["erlang"]',
     'nix = ["erlang", "otp27.erlang"]', "evaluation"),
    ("another branch than the lock's", "flake.nix", "nixos-unstable", "nixos-25.11", "lock"),
    ("a lock moved without its record", "flake.lock", "xnJJk+ct+D2", "ynJJk+ct+D2", "lock"),
    ("an input that the lock lacks", "flake.lock", '"nixpkgs-2014": {', '"nixpkgs-2013": {',
     "evaluation"),
    ("a server without its Nix file", "nix/servers/perl-ev-ws.nix", None, None, "names"),
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
    ("load generators forgotten", "nix/default.nix", "clients = clients.shell;", "clients = [ ];",
     "clients"),
    ("a load generator that does not reach the shell", "nix/clients.nix",
     "(client: !(client ? built_by))", "(client: client ? nix && !(client ? built_by))", "clients"),
    ("a load generator that its server does not bring", "nix/clients.nix", "client.built_by or",
     "client.builtBy or", "clients"),
    ("a load generator of a server that is none", "clients/wsload/client.toml",
     'built_by = "ws-null"', 'built_by = "ws-nul"', "clients"),
    ("a load generator whose expression is not there", "clients/wsload/client.toml",
     'nix = "wsload.nix"', 'nix = "default.nix"', "evaluation"),
    ("a library of Erlang that there is not", "servers/mochiweb/server.toml",
     "erlangLibs.mochiweb", "erlangLibs.mochiwebb", "evaluation"),
    ("a paper that is taken for current", "nix/paper.nix", " --forceall", "", "paper"),
    ("a library of the system under Nix", "servers/yaws/server.toml", "-pa ebin lib/yaws/ebin",
     "-pa ebin /usr/lib/yaws/ebin", "debian_paths"),
    ("a release that Nix does not give", "servers/releases/cowboy-otp29/server.toml",
     'nix = "Cowboy 2.13.0', 'nix = "Cowboy 2.20.0', "releases"),
    ("a release that is said to be alike in both toolchains",
     "servers/releases/yaws-otp29/server.toml", 'nix = "Yaws 2.2.0, OTP 29.0.2"\n', "", "releases"),
    ("every server in the first shell", "nix/default.nix",
     'default = shell tools.measure (variables "nix");',
     'default = furnished "nix" tools.measure current;', "environment"),
    ("a hundred crates in the first shell", "nix/clients.nix",
     "those (client: !(client ? built_by));", "builtins.attrValues packages;", "light"),
    ("a shell for macOS with what it lacks", "nix/darwin.nix", ".notebooks", ".lab", "evaluation"),
    ("a server of dead hosts in everyone's shell", "nix/default.nix",
     'removeAttrs servers [ "node-0.10" ]', "servers", "names"),
    ("a desktop with every Erlang server", "nix/toolchain.nix", "pkgs.beam_minimal", "pkgs.beam",
     "no_desktop"),
    ("a compiler of another age than the Python's", "servers/releases/tornado-3.2/server.toml",
     "pkgs-2022.gcc", "gcc", "compilers"),
    ("a program that npm fetches for one system", "servers/node-ws/package-lock.json",
     '"node_modules/ws"', '"node_modules/ws-linux-x64"', "prebuilt"),
    ("an insecure Python that nixpkgs refuses", "nix/default.nix", '"2.7."', '"2.6."',
     "evaluation"),
    ("a server of a library without a confirmed hash", "servers/mochiweb/server.toml",
     "erlangLibs.mochiweb", "erlangLibs.webmachine", "evaluation"),
    ("a system dropped", "flake.nix", '        "aarch64-linux"\n', "", "names"),
    ("a shell of the old pin dropped", "nix/era.nix",
     "  era-R16B02 = of pkgs-2014.erlang;\n", "", "names"),
    ("a server without a program of its own", "servers/yucan/server.toml",
     'nix = ["erlang"]', 'nix = ["gcc"]', "programs"),
    ("a program of the runner forgotten", "nix/tools.nix", "    pkgs.procps\n", "", "programs"),
    ("a Python module forgotten", "pyproject.toml", '  "psutil",\n', "", "modules"),
    ("a server's Python module forgotten", "servers/tornado/server.toml",
     "python3Packages.tornado", "python3Packages.twisted", "modules"),
    ("a misspelt variable of the shells", "nix/default.nix", "DEATHMATCH_SERVERS",
     "DEATHMATCH_SERVER", "environment"),
    ("a server linked under another name", "nix/default.nix", "{ ${name} = server; }",
     '{ "a${name}" = server; }', "environment"),
    ("another well-formed hash", "nix/erlang-libs.nix", "4114e51f", "4114e51e", "hashes"),
    ("a placeholder without its reason", "nix/misultin.nix",
     "    # Misultin's README names the tag; no public place that we found records a hash of it.\n",
     "", "hashes"),
    ("httperf built with other flags", HTTPERF, " -U_FORTIFY_SOURCE", "", "httperf"),
    # What only a build would find:
    ("a tag that does not exist", "nix/misultin.nix", "refs/tags/misultin-", "refs/tags/v", None),
    ("a misspelt command in a phase", HTTPERF, "install -D", "instal -D", None),
    ("a misspelt command in a build", "nix/clients.nix", "sh ./build", "sh ./buidl", None),
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
