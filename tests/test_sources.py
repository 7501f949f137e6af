"""The files that make up a server: its trials are due again once they change."""

import io
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from subprocess import PIPE

import pytest
from conftest import Tree, first_line

from deathmatch.builds import copy

# For each server's name that it reads it prints the fingerprint and the sources, as they are now.
SCRIPT = """import sys
from deathmatch.plan import files, paths, server
for name in sys.stdin:
    paths.ignored.cache_clear()
    server.fingerprint.cache_clear()
    one = files.server(name.strip())
    print(server.fingerprint(one), *server.source_files(one), flush=True)"""


@pytest.fixture
def sources(tree) -> Iterator[Callable[..., tuple[str, list[str]]]]:
    """A function that returns the fingerprint and the sources of a server of `tree`."""
    words = tree.command("python", "-c", SCRIPT)
    with subprocess.Popen(words, cwd=tree.path, stdin=PIPE, stdout=PIPE, text=True) as process:

        def now(server: str = "one") -> tuple[str, list[str]]:
            print(server, file=process.stdin, flush=True)
            fingerprint, *names = first_line(process).split()
            return fingerprint, [name.removeprefix("servers/one/") for name in names]

        yield now


def test_the_files_of_a_server(tree: Tree, sources, tmp_path):
    """Its files, their names and execute bits, code behind links, and sources elsewhere."""
    tree.server("one", "ok", sources=["lib"])
    tree.write("lib/code.py", "1")
    (tree.path / "servers/one/linked").symlink_to(tmp_path / "elsewhere")
    linked = tmp_path / "elsewhere/code.py"
    linked.parent.mkdir()
    linked.write_text("1")
    # A circle ends.
    (linked.parent / "again").symlink_to(linked.parent)
    before, names = sources()
    assert names == ["lib/code.py", "broken.py", "linked/code.py", "server.toml"]
    file, seen = tree.path / "servers/one/broken.py", [before]
    for change in (
        lambda: linked.write_text("2"),
        lambda: tree.write("lib/code.py", "2"),
        lambda: file.chmod(0o755),
        lambda: file.rename(file.with_name("other.py")),
    ):
        change()
        seen.append(sources()[0])
    assert len(set(seen)) == 5


def test_another_machine_gets_the_code_behind_a_link(tmp_path, monkeypatch):
    monkeypatch.setattr(copy, "ROOT", tmp_path)
    (tmp_path / "code.py").write_text("1")
    (tmp_path / "linked.py").symlink_to(tmp_path / "code.py")
    with tarfile.open(fileobj=io.BytesIO(copy._packed(["linked.py"]))) as packed:
        assert packed.getmember("linked.py").isfile()


def test_left_and_ignored_files_are_no_part_of_a_server(tree: Tree, sources):
    tree.server("one", "ok")
    before = sources()
    litter = [".broken.py.swp", "broken.py~", ".DS_Store", ".git/HEAD", "__pycache__/broken.pyc",
              ".mypy_cache/x", ".#broken.py", "#broken.py#"]  # fmt: skip
    for name in litter:
        tree.write(f"servers/one/{name}", "left")
    assert sources() == before
    tree.write("servers/one/seen.log", "left")
    assert "seen.log" in sources()[1]
    git = ["git", "-C", tree.path]
    subprocess.run([*git, "init", "--quiet"], check=True)
    tree.write(".gitignore", "*.log\n")
    assert sources() == before
    # A server that is ignored as a whole has all its files.
    tree.write(".git/info/exclude", "/servers/one/\n")
    assert "seen.log" in sources()[1]


def test_a_release_has_the_files_of_its_system(tree: Tree, sources):
    tree.server("one", "ok")
    tree.write("servers/one/requirements.txt", "of the system")
    tree.write("servers/releases/later/requirements.txt", "of the release")
    tree.write("servers/releases/later/server.toml", 'extends = "one"\ntitle = "later"\n')
    before, names = sources("later")
    own = [f"servers/releases/later/{name}" for name in ("requirements.txt", "server.toml")]
    assert names == ["broken.py", "server.toml", *own]
    tree.write("servers/one/requirements.txt", "of another release of the system")
    assert sources("later") == (before, names)
    tree.write("servers/one/broken.py", "print()")
    assert sources("later")[0] != before


def test_the_file_that_makes_a_trial_due_is_named(tree: Tree):
    tree.server("one", "ok")
    tree.replace(
        "servers/one/broken.py", "    listener = socket.create_server",
        "    Path(__file__).with_name('own.log').open('a').write('started')\n"
        "    listener = socket.create_server",
    )  # fmt: skip
    tree.dataset("tiny", ["one"], [100])
    (folder,) = tree.trials("tiny").values()
    trial = str(folder.relative_to(tree.path))
    said = tree.deathmatch("trial", trial).succeeded().text
    told = "servers/one/own.log is new"
    assert f"during the trial, {told}: the next run measures it again" in said
    said = tree.snakemake("-n", dataset="tiny").succeeded().text
    assert f"one: {told}; its trials are due" in said and "0 of 1 trials" in said
    (tree.path / "servers/one/own.log").unlink()
    assert "1 of 1 trials" in tree.checked(dataset="tiny").succeeded().text
    assert (tree.path / "data/tiny/.gitignore").read_text() == "*\n"
