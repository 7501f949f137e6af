"""Servers under the Nix toolchain: a real `nix build` of a small flake, and what it refuses."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import ROOT, Tree, copy_tree
from nix_flake import start

pytestmark = pytest.mark.nix

# Two packages made without nixpkgs: a python3 of its own, and one that is the system's.
FLAKE = r"""{
  outputs = _: {
    packages = builtins.mapAttrs (system: _:
      let
        package = name: script: derivation {
          inherit name system;
          builder = "/bin/sh";
          args = [ "-c" "/bin/mkdir -p $out/bin; ${script}" ];
        };
        own = "printf '#!/bin/sh\\nexec /usr/bin/python3 \"$@\"\\n' >$out/bin/python3; "
          + "/bin/chmod +x $out/bin/python3";
      in {
        "v0.1" = package "v0.1" own;
        systems = package "systems" "/bin/ln -s /usr/bin/python3 $out/bin/python3";
        fails = package "fails" "echo no such compiler >&2; exit 3";
      }) { x86_64-linux = 1; aarch64-linux = 1; };
  };
}
"""
LOCK = '{"nodes": {"root": {}}, "root": "root", "version": 7}\n'


@pytest.fixture(scope="module")
def nixed(tmp_path_factory, network) -> Tree:
    """A copy of the project with that flake, as in a shell of it."""
    tree = Tree(copy_tree(tmp_path_factory.mktemp("nixed") / "tree"), network)
    tree.write("flake.nix", FLAKE)
    tree.write("flake.lock", LOCK)
    nix = start(tmp_path_factory.mktemp("nix"))
    tree.environment |= nix.environment() | {"DEATHMATCH_TOOLCHAIN": "nix"}
    return tree


def server(tree: Tree, name: str, more: str = "") -> None:
    tree.server(name, "ok", version="python3 --version")
    toml = tree.path / "servers" / name / "server.toml"
    toml.write_text(toml.read_text() + more + '\n[packages]\ntools = ["python3"]\n')


def built(tree: Tree, name: str) -> dict:
    tree.deathmatch("build", "--record", name).succeeded()
    return json.loads((tree.path / "build" / "servers" / name / "build.json").read_text())


def test_a_server_is_built_by_the_flake_and_measured_under_its_store_path(nixed: Tree):
    # A name with a dot is one attribute.
    server(nixed, "v0.1")
    nixed.dataset("test", ["v0.1"], [100])
    # Programs that Debian's build put into the folder would come before those of Nix.
    stale = nixed.write("build/servers/v0.1/bin/python3", "#!/bin/sh\n")
    stale.chmod(0o755)
    nixed.write("build/servers/v0.1/toolchain", "debian")
    done = nixed.snakemake("data/test/backlog/trials.parquet", dataset="test").succeeded()
    assert not stale.exists()
    path = nixed.trials("test")["v0.1", 1]
    record = json.loads((path / "trial.json").read_text())
    assert record["outcome"] == "measured", done.text
    store = f"{nixed.environment['NIX_STORE_DIR']}/"
    for tool in ("package", "python3"):
        assert record["tools"]["server"][tool].startswith(store)
    assert record["tools"]["server"]["toolchain"] == "nix"
    # A root of the garbage collector keeps the programs that measured a dataset.
    assert str((nixed.path / "build/servers/v0.1/nix").resolve()).startswith(store)


def test_a_package_that_does_not_build_is_a_result_with_its_log(nixed: Tree):
    server(nixed, "fails")
    result = built(nixed, "fails")
    assert not result["ok"] and "no such compiler" in result["log"]


def test_a_program_of_the_system_is_not_measured_under_the_name_of_nix(nixed: Tree):
    server(nixed, "systems")
    result = built(nixed, "systems")
    assert not result["ok"]
    assert result["log"].startswith(
        "the tool python3 of servers/systems/server.toml, key packages.tools, is "
    )
    assert "and not from Nix: add its package to packages.nix" in result["log"]


def test_a_server_that_is_not_in_the_flake(nixed: Tree):
    server(nixed, "two")
    done = nixed.deathmatch("build", "two").failed()
    assert "the flake has no package of the server 'two'" in done.text
    assert "`git add` the folder" in done.text
    server(nixed, "two", 'not_in_nix = "no such library"\n')
    result = built(nixed, "two")
    assert (result["ok"], result["log"]) == (False, "no such library")


def test_without_nix_on_path(nixed: Tree):
    server(nixed, "one")
    where = Path(shutil.which("python")).parent
    for program in ("sh", "nsenter"):
        nixed.write(f"programs/{program}", "").unlink()
        (nixed.path / "programs" / program).symlink_to(shutil.which(program))
    path = f"PATH={where}:{nixed.path / 'programs'}"
    done = nixed.run("env", path, "python", "-m", "deathmatch", "build", "one").failed()
    assert "the server 'one' cannot be built: there is no nix on PATH" in done.text


def test_nothing_is_unpacked_from_debian(nixed: Tree):
    done = nixed.run(ROOT / "toolchains/debian/fetch", "bookworm", nixed.path / "out", "hello")
    assert "under Nix nothing is taken from Debian" in done.failed().text
    assert not (nixed.path / "out").exists()
