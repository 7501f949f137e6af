"""A dataset's raw logs in an archive: the same bytes each time, and all that was measured."""

import shutil
import subprocess
import tarfile
from pathlib import Path

from conftest import ROOT, Tree

MEASURED = ROOT / "tests" / "data" / "yucan"


def contents(folder: Path) -> dict[Path, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder): path.read_bytes() for path in paths}


def test_raw_logs_are_packed_and_unpacked(shared_tree: Tree, tmp_path):
    tree = shared_tree
    levels = 'backlog = [1, 5]\nschedulers = ["all"]\nsomaxconn = [128]'
    tree.dataset("tiny", ["yucan"], [500, 2000], levels=levels)
    folder = tree.path / "data/tiny/backlog"
    kept, packed = folder / "yucan", folder / "raw.tar.xz"
    shutil.copytree(MEASURED, kept)
    done = tree.deathmatch("archive", "tiny").failed()
    assert "1 of 2 trials are missing, the first data/tiny/backlog/" in done.text
    assert [*folder.iterdir()] == [kept]
    tree.deathmatch("archive", "tiny", "--measured").succeeded()
    first = packed.read_bytes()
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path / "out")
    assert contents(MEASURED) == contents(tmp_path / "out" / "yucan") != {}
    (record,) = folder.rglob("trial.json")
    record.touch()
    tree.deathmatch("archive", "tiny", "--measured").succeeded()
    assert packed.read_bytes() == first
    # A trial that was measured here stays.
    record.write_text("mine")
    done = tree.deathmatch("unpack", "tiny").succeeded()
    assert "0 trials, 1 were there" in done.text and record.read_text() == "mine"
    # Files of an interrupted trial, without a record, are no result.
    record.unlink()
    (record.parent / "left").write_text("interrupted")
    assert "raw.tar.xz: 1 trials" in tree.deathmatch("unpack", "tiny").succeeded().text
    assert contents(kept) == contents(MEASURED)
    shutil.rmtree(kept)
    packed.write_bytes(first[:-100])
    done = tree.deathmatch("unpack", "tiny").failed()
    assert "data/tiny/backlog/raw.tar.xz: it cannot be unpacked" in done.text
    assert [*folder.iterdir()] == [packed]
    packed.unlink()
    assert "no experiment there has a raw.tar.xz" in tree.deathmatch("unpack", "tiny").failed().text


def test_the_committed_datasets_are_no_burden_to_a_clone():
    """Each clone fetches them."""
    words = ["git", "ls-files", "data/reference"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    sizes_bytes = [(ROOT / path).stat().st_size for path in listed.stdout.split()]
    assert len(sizes_bytes) > 60 and sum(sizes_bytes) < 100e6


def test_tables_are_made_again_from_an_archive(shared_tree: Tree):
    """In any environment; the trials of a packed dataset have no folders."""
    odd = {"TZ": "Asia/Kathmandu", "POLARS_MAX_THREADS": "4", "PYTHONHASHSEED": "2"}
    tree = Tree(shared_tree.path, shared_tree.enter, odd)
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
    (folder / "raw.tar.xz").unlink()
    done = tree.deathmatch("tidy", "data/reference/storage").failed()
    assert "data/reference/storage: no trial is measured\n  run snakemake" in done.text


def test_sha256sum_agrees_with_the_checksums_of_the_committed_dataset():
    folder = ROOT / "data/reference"
    words = ["sha256sum", "--check", "--strict", "checksums.sha256"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    checked = {line.partition(":")[0] for line in done.stdout.splitlines()}
    packed = [*folder.glob("*/*.parquet"), *folder.glob("*/raw.tar.xz")]
    assert checked == {path.relative_to(folder).as_posix() for path in packed} | {"rules.json"}
