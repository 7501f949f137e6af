"""What a server is made of, which decides what of it is measured again: which files, and how."""

import io
import subprocess
import tarfile

from conftest import Tree

from deathmatch.builds import copy

# Prints the fingerprint and the sources of a server.
SCRIPT = (
    "import sys\nfrom deathmatch.plan import files, server\none = files.server(sys.argv[1])\n"
    "print(server.fingerprint(one), *server.source_files(one))"
)


def sources(tree: Tree, server: str = "one") -> tuple[str, list[str]]:
    fingerprint, *names = tree.run("python", "-c", SCRIPT, server).succeeded().text.split()
    return fingerprint, [name.removeprefix("servers/one/") for name in names]


def test_what_is_part_of_a_server(tree: Tree, tmp_path):
    """Its files, their names and execute bits, code behind links, and sources elsewhere."""
    tree.server("one", "ok", sources=["lib"])
    tree.write("lib/code.py", "1")
    (tree.path / "servers/one/linked").symlink_to(tmp_path / "elsewhere")
    linked = tmp_path / "elsewhere/code.py"
    linked.parent.mkdir()
    linked.write_text("1")
    # A circle ends.
    (linked.parent / "again").symlink_to(linked.parent)
    before, names = sources(tree)
    assert names == ["lib/code.py", "broken.py", "linked/code.py", "server.toml"]
    file, seen = tree.path / "servers/one/broken.py", [before]
    for change in (
        lambda: linked.write_text("2"),
        lambda: tree.write("lib/code.py", "2"),
        lambda: file.chmod(0o755),
        lambda: file.rename(file.with_name("other.py")),
    ):
        change()
        seen.append(sources(tree)[0])
    assert len(set(seen)) == 5


def test_another_machine_gets_the_code_behind_a_link(tmp_path, monkeypatch):
    monkeypatch.setattr(copy, "ROOT", tmp_path)
    (tmp_path / "code.py").write_text("1")
    (tmp_path / "linked.py").symlink_to(tmp_path / "code.py")
    with tarfile.open(fileobj=io.BytesIO(copy._packed(["linked.py"]))) as packed:
        assert packed.getmember("linked.py").isfile()


def test_what_programs_leave_is_no_part_of_it_nor_what_git_ignores(tree: Tree):
    tree.server("one", "ok")
    before = sources(tree)
    litter = [".broken.py.swp", "broken.py~", ".DS_Store", ".git/HEAD", "__pycache__/broken.pyc",
              ".mypy_cache/x", ".#broken.py", "#broken.py#"]  # fmt: skip
    for name in litter:
        tree.write(f"servers/one/{name}", "left")
    assert sources(tree) == before
    tree.write("servers/one/seen.log", "left")
    assert "seen.log" in sources(tree)[1]
    git = ["git", "-C", tree.path]
    subprocess.run([*git, "init", "--quiet"], check=True)
    tree.write(".gitignore", "*.log\n")
    assert sources(tree) == before
    # A whole server that its owner keeps out of git has all its files.
    tree.write(".git/info/exclude", "/servers/one/\n")
    assert "seen.log" in sources(tree)[1]


def test_a_release_is_made_of_its_systems_files_but_those_that_it_has_itself(tree: Tree):
    tree.server("one", "ok")
    tree.write("servers/one/requirements.txt", "of the system")
    tree.write("servers/releases/later/requirements.txt", "of the release")
    tree.write("servers/releases/later/server.toml", 'extends = "one"\ntitle = "later"\n')
    before, names = sources(tree, "later")
    own = [f"servers/releases/later/{name}" for name in ("requirements.txt", "server.toml")]
    assert names == ["broken.py", "server.toml", *own]
    tree.write("servers/one/requirements.txt", "of another release of the system")
    assert sources(tree, "later") == (before, names)
    tree.write("servers/one/broken.py", "print()")
    assert sources(tree, "later")[0] != before


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
    assert f"one: {told}; its trials are due" in said
