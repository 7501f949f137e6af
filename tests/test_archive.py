"""A dataset's raw logs in an archive: the same bytes each time, and all that was measured."""

import shutil
import subprocess
import tarfile

import pytest
from conftest import ROOT, Tree, copy_tree

MEASURED = ROOT / "tests" / "data" / "yucan"


@pytest.fixture
def tree(tmp_path, network) -> Tree:
    tree = Tree(copy_tree(tmp_path / "tree"), network)
    levels = 'backlog = [1]\nschedulers = ["all"]\nsomaxconn = [128]'
    tree.dataset("tiny", ["yucan"], [500, 2000], levels=levels)
    shutil.copytree(MEASURED, tree.path / "data/tiny/backlog/yucan")
    return tree


def test_what_is_packed_is_what_was_measured(tree: Tree, tmp_path):
    tree.deathmatch("archive", "tiny").succeeded()
    packed = tree.path / "data/tiny/backlog/raw.tar.xz"
    first = packed.read_bytes()
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path / "out")
    kept = {
        path.relative_to(MEASURED): path.read_bytes()
        for path in MEASURED.rglob("*")
        if path.is_file()
    }
    unpacked = tmp_path / "out" / "yucan"
    assert kept and kept == {
        path.relative_to(unpacked): path.read_bytes()
        for path in unpacked.rglob("*")
        if path.is_file()
    }
    for path in (tree.path / "data/tiny").rglob("*.json"):
        path.touch()
    tree.deathmatch("archive", "tiny").succeeded()
    assert packed.read_bytes() == first


def test_half_a_dataset_is_not_packed(tree: Tree):
    tree.dataset("tiny", ["yucan", "null"], [500, 2000])
    done = tree.deathmatch("archive", "tiny").failed()
    assert "trials are missing, the first data/tiny/backlog/" in done.text
    assert not list((tree.path / "data/tiny").rglob("raw*"))


def test_what_is_measured_so_far_goes_on_in_another_clone(tree: Tree):
    levels = 'backlog = [1, 5]\nschedulers = ["all"]\nsomaxconn = [128]'
    tree.dataset("tiny", ["yucan"], [500, 2000], levels=levels)
    tree.deathmatch("archive", "tiny", "--measured").succeeded()
    folder = tree.path / "data/tiny/backlog"
    own = next((folder / "yucan").glob("*/1"))
    before = {path.name: path.read_bytes() for path in own.iterdir() if path.is_file()}
    shutil.rmtree(folder / "yucan")
    # What an interrupted trial left, without a record, is no result.
    own.mkdir(parents=True)
    (own / "server.log").write_text("interrupted")
    done = tree.deathmatch("unpack", "tiny").succeeded()
    assert "raw.tar.xz: 1 trials" in done.text
    assert {path.name: path.read_bytes() for path in own.iterdir() if path.is_file()} == before
    assert not list(folder.glob(".unpacked-*"))


def test_unpacking_keeps_what_is_measured_here(tree: Tree):
    tree.deathmatch("archive", "tiny").succeeded()
    record = next((tree.path / "data/tiny").rglob("trial.json"))
    record.write_text("mine")
    done = tree.deathmatch("unpack", "tiny").succeeded()
    assert "0 trials, 1 were there" in done.text and record.read_text() == "mine"


def test_a_damaged_archive_changes_nothing(tree: Tree):
    tree.deathmatch("archive", "tiny").succeeded()
    packed = tree.path / "data/tiny/backlog/raw.tar.xz"
    packed.write_bytes(packed.read_bytes()[:-100])
    shutil.rmtree(tree.path / "data/tiny/backlog/yucan")
    done = tree.deathmatch("unpack", "tiny").failed()
    assert "data/tiny/backlog/raw.tar.xz: it cannot be unpacked" in done.text
    assert sorted((tree.path / "data/tiny/backlog").iterdir()) == [packed]
    packed.unlink()
    assert "no experiment there has a raw.tar.xz" in tree.deathmatch("unpack", "tiny").failed().text


def test_the_committed_datasets_are_no_burden_to_a_clone():
    """Each clone fetches them."""
    weights = {
        "reference": (60, 40e6),
        "history": (6, 5e6),
        "history-capacity": (7, 8e6),
    }
    for folder, (least_files, most_bytes) in weights.items():
        words = ["git", "ls-files", f"data/{folder}"]
        listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
        sizes_bytes = [(ROOT / path).stat().st_size for path in listed.stdout.split()]
        assert len(sizes_bytes) > least_files and sum(sizes_bytes) < most_bytes, folder


def test_tables_are_made_again_from_an_archive(tmp_path, network):
    """One command for a packed dataset; its trials have no folders."""
    tree = Tree(copy_tree(tmp_path / "tree"), network)
    for experiment in ("overhead", "storage"):
        folder = tree.path / "data/reference" / experiment
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "data/reference" / experiment / "raw.tar.xz", folder)
    tree.deathmatch("tidy", "data/reference").succeeded()
    made = sorted((tree.path / "data/reference").glob("*/*.parquet"))
    assert {file.stem for file in made} >= {"trials", "points", "times"}
    for file in made:
        committed = ROOT / file.relative_to(tree.path)
        assert file.read_bytes() == committed.read_bytes(), file.name
    folder = tree.path / "data/reference/storage"
    assert not [path for path in folder.iterdir() if path.is_dir()]
    (folder / "raw.tar.xz").write_bytes(b"")
    done = tree.deathmatch("tidy", "data/reference/storage").failed()
    assert "data/reference/storage/raw.tar.xz: it cannot be unpacked" in done.text


def test_sha256sum_agrees_with_the_checksums_of_the_committed_dataset():
    folder = ROOT / "data/reference"
    words = ["sha256sum", "--check", "--strict", "checksums.sha256"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    checked = {line.partition(":")[0] for line in done.stdout.splitlines()}
    packed = [*folder.glob("*/*.parquet"), *folder.glob("*/raw.tar.xz")]
    assert checked == {path.relative_to(folder).as_posix() for path in packed} | {"rules.json"}
