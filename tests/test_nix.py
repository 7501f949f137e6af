"""The flake, evaluated by a real Nix against a stand-in for nixpkgs.

No binary cache is within reach here, so nothing of nixpkgs is built. The checks are in
nix_checks.py and nix_servers.py; test_nix_faults.py shows which mistakes each of them finds.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Tree, project_files
from nix_checks import CHECKS, dead_code, formatting
from nix_flake import SYSTEMS, Nix, Refused, closure, copy_flake, start, uses
from nix_servers import clients, names, programs

from deathmatch.builds import debian
from deathmatch.plan.paths import ROOT


@pytest.fixture(scope="module")
def nix(tmp_path_factory) -> Nix:
    return start(tmp_path_factory.mktemp("nix"))


@pytest.fixture(scope="module")
def clean(tmp_path_factory) -> Path:
    """A copy of the project, so that nothing ignored by git gets into Nix's store."""
    return copy_flake(tmp_path_factory.mktemp("clean"))


# The checkers of files are installed for them alone.
FILES = [
    pytest.param(check, marks=pytest.mark.nix) if check in (formatting, dead_code) else check
    for check in CHECKS
]


@pytest.mark.parametrize("check", FILES, ids=lambda check: check.__name__)
def test_flake(check, nix, clean):
    check(nix, clean)


@pytest.mark.nix
def test_a_folder_is_all_that_nix_needs(nix, tmp_path):
    """A server, with a library of Python, and load generators, by an expression or a script."""
    tree = copy_flake(tmp_path)
    shutil.copytree(tree / "servers" / "_template" / "one-request", tree / "servers" / "mine")
    toml = tree / "servers" / "mine" / "server.toml"
    nixed = 'nix = ["gcc", "python3Packages.tornado", "apacheHttpdPackages.mod_wsgi3"]'
    toml.write_text(toml.read_text().replace('nix = ["python3"]', nixed))
    about = 'title = "mine"\nprogram = "{0}"\nversion = "{0} --version"\n'
    for name, program in (("scripted", "fire"), ("expressed", "shoot")):
        folder = shutil.copytree(tree / "clients" / "roundtrip", tree / "clients" / name)
        (folder / "client.toml").write_text(about.format(program))
    text = 'pkgs: pkgs.writeShellApplication {\n  name = "shoot";\n  text = "true";\n}\n'
    (folder / "mine.nix").write_text(text)
    with (folder / "client.toml").open("a") as client:
        client.write('nix = "mine.nix"\n')
    for system in SYSTEMS:
        mine = nix.outputs(tree)["packages"][system]["mine"]
        assert {"cc", "python3"} <= set(mine["tools"]) and mine["modules"] == ["tornado"]
        for output in ("packages", "checks"):
            assert nix.outputs(tree)[output][system]["expressed"]["tools"] == ["shoot"]
            assert nix.outputs(tree)[output][system]["scripted"]["tools"] == ["fire"]
    names(nix, tree)
    programs(nix, tree)
    clients(nix, tree)


@pytest.mark.nix
def test_libwebsockets_is_built_with_libuv(nix, clean):
    """Its option is off by default; the server's epoll is libuv's."""
    for system in SYSTEMS:
        made = nix.outputs(clean)["packages"][system]["libwebsockets"]["drvPath"]
        library = [path for path in closure(made) if "-libwebsockets-" in path.name]
        flags = [uses(path)["cmakeFlags"] for path in library if "cmakeFlags" in uses(path)]
        assert [flag for each in flags for flag in each][-1] == "-DLWS_WITH_LIBUV=ON"


@pytest.mark.nix
@pytest.mark.parametrize("library", ["misultin", "webmachine"])
def test_a_library_without_a_confirmed_hash_names_the_command_that_prints_it(library, nix, clean):
    attribute = f"legacyPackages.x86_64-linux.erlangLibs.{library}.drvPath"
    with pytest.raises(Refused, match=f"`nix build .#unconfirmed.{library}` fails and prints"):
        nix.flake("eval", f"path:{clean}#{attribute}")
    command = f"path:{clean}#unconfirmed.{library}"
    assert nix.flake("build --dry-run", command) == ""


@pytest.mark.nix
def test_an_old_erl_is_not_given_later_flags(tmp_path):
    """With today's erl and a flag that it does not know in the place of one that is too new."""
    if not shutil.which("erl", path="/usr/bin"):
        assert debian.install(["erlang-base"], tmp_path / "install.log")
    script = tmp_path / "erl"
    text = (ROOT / "nix" / "era-erl").read_text()
    script.write_text(text.replace("@erl@", "/usr/bin/erl").replace("+sbwtdio", "+nosuch"))
    flags = tmp_path / "vm.args"
    flags.write_text("# of all servers\n+sbwt none # known\n+nosuch none\n")
    words = ["-args_file", flags, "+S", "1:1", "+nosuch", "1", "-noshell", "-eval"]
    code = 'io:format("~p ~s", [erlang:system_info(schedulers), "a  b"]), halt().'
    done = subprocess.run(["sh", script, *words, code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "1 a  b"), done.stderr


@pytest.mark.nix
def test_the_paper_is_made_where_all_files_have_one_date(tmp_path, network):
    """In Nix's store Snakemake would take every file for current; the recipe makes them all."""
    for name in project_files():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
        os.utime(tmp_path / name, (1, 1))
    tree = Tree(tmp_path, network)
    recipe = (ROOT / "nix" / "paper.nix").read_text()
    words = re.search(r"^ *(snakemake paper .*)$", recipe, re.M)[1].split()
    without = [word for word in words if word != "--forceall"]
    # Only the figures' links are left to make; the paper itself is not.
    assert "write_paper" not in planned(tree, without)
    made = planned(tree, words)
    assert made["write_paper"] == 1
    assert made["notebook"] == len(list((tmp_path / "notebooks").glob("*.md")))


def planned(tree: Tree, words: list[str]) -> dict[str, int]:
    """Return how many jobs of each rule a dry run of the command plans."""
    text = tree.run(*words, "--dry-run", "--quiet", "reason").succeeded().text
    return {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", text, re.M)}
