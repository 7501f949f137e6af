"""What a server is made of, which decides what of it is measured again: which files, and how."""

import io
import subprocess
import tarfile

import pytest
from conftest import Tree

from deathmatch.builds import copy

# Prints the fingerprint and the sources of a server.
SCRIPT = (
    "import sys\nfrom deathmatch.plan import files, server\none = files.server(sys.argv[1])\n"
    "print(server.fingerprint(one), *server.source_files(one))"
)


@pytest.fixture
def one(tree: Tree) -> Tree:
    tree.server("one", "ok")
    return tree


def sources(tree: Tree, server: str = "one") -> tuple[str, list[str]]:
    fingerprint, *names = tree.run("python", "-c", SCRIPT, server).succeeded().text.split()
    return fingerprint, [name.removeprefix("servers/one/") for name in names]


def test_code_behind_a_link_to_a_folder_is_part_of_it(one: Tree, tmp_path):
    (one.path / "servers/one/lib").symlink_to(tmp_path / "elsewhere")
    code = tmp_path / "elsewhere/code.py"
    code.parent.mkdir()
    code.write_text("1")
    # A circle ends.
    (code.parent / "again").symlink_to(code.parent)
    before, names = sources(one)
    assert names == ["broken.py", "lib/code.py", "server.toml"]
    code.write_text("2")
    assert sources(one)[0] != before


def test_another_machine_gets_the_code_behind_a_link(tmp_path, monkeypatch):
    monkeypatch.setattr(copy, "ROOT", tmp_path)
    (tmp_path / "code.py").write_text("1")
    (tmp_path / "linked.py").symlink_to(tmp_path / "code.py")
    with tarfile.open(fileobj=io.BytesIO(copy._packed(["linked.py"]))) as packed:
        assert packed.getmember("linked.py").isfile()


def test_the_execute_bit_and_the_name_are_part_of_it(one: Tree):
    before, file = sources(one)[0], one.path / "servers/one/broken.py"
    file.chmod(0o755)
    executable = sources(one)[0]
    file.rename(file.with_name("other.py"))
    assert len({before, executable, sources(one)[0]}) == 3


def test_sources_in_other_folders_are_part_of_it(tree: Tree):
    tree.server("one", "ok", sources=["lib"])
    tree.write("lib/code.py", "1")
    before = sources(tree)[0]
    tree.write("lib/code.py", "2")
    assert sources(tree)[0] != before


def test_what_programs_leave_is_no_part_of_it_nor_what_git_ignores(one: Tree):
    before = sources(one)
    litter = [".broken.py.swp", "broken.py~", ".DS_Store", ".git/HEAD", "__pycache__/broken.pyc",
              ".mypy_cache/x", ".#broken.py", "#broken.py#"]  # fmt: skip
    for name in litter:
        one.write(f"servers/one/{name}", "left")
    assert sources(one) == before
    one.write("servers/one/seen.log", "left")
    assert "seen.log" in sources(one)[1]
    git = ["git", "-C", one.path]
    subprocess.run([*git, "init", "--quiet"], check=True)
    one.write(".gitignore", "*.log\n")
    assert sources(one) == before
    # A whole server that its owner keeps out of git has all its files.
    one.write(".git/info/exclude", "/servers/one/\n")
    assert "seen.log" in sources(one)[1]


def test_a_release_is_made_of_its_systems_files_but_those_that_it_has_itself(one: Tree):
    one.write("servers/one/requirements.txt", "of the system")
    one.write("servers/releases/later/requirements.txt", "of the release")
    one.write("servers/releases/later/server.toml", 'extends = "one"\ntitle = "later"\n')
    before, names = sources(one, "later")
    own = [f"servers/releases/later/{name}" for name in ("requirements.txt", "server.toml")]
    assert names == ["broken.py", "server.toml", *own]
    one.write("servers/one/requirements.txt", "of another release of the system")
    assert sources(one, "later") == (before, names)
    one.write("servers/one/broken.py", "print()")
    assert sources(one, "later")[0] != before


def test_the_file_that_makes_a_trial_due_is_named(one: Tree, network):
    one.enter[:] = network
    one.replace(
        "servers/one/broken.py", "    listener = socket.create_server",
        "    Path(__file__).with_name('own.log').open('a').write('started')\n"
        "    listener = socket.create_server",
    )  # fmt: skip
    one.dataset("tiny", ["one"], [100])
    (folder,) = one.trials("tiny").values()
    trial = str(folder.relative_to(one.path))
    said = one.deathmatch("trial", trial).succeeded().text
    told = "servers/one/own.log is new"
    assert f"while it was measured, {told}, so that the next run measures it again" in said
    said = one.snakemake("-n", dataset="tiny").succeeded().text
    assert f"one: {told}; its trials are due" in said
