"""A dataset that passed the strict check gets checksums, a citation, a codecheck.yml, a crate."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import yaml
from conftest import ROOT, Tree, copy_tree

from deathmatch.data import checksums

FOLDER = "data/reference"
MADE = {"checksums.sha256", "CITATION.cff", "codecheck.yml", "ro-crate-metadata.json"}
# The releases that this was written with; they are no part of the tools, as nixpkgs lacks them.
VALIDATOR = ["roc-validator==0.13.0", "rocrate"]
# The validator reads the meaning of terms from the network; the library has them in a file.
SEED = """
import io, pathlib, sys
import requests, rocrate, urllib3
from rocrate_validator.utils.http import HttpRequester

address, kind = "https://w3id.org/ro/crate/1.1/context", {"Content-Type": "application/ld+json"}
terms = (pathlib.Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld").read_bytes()
answer = requests.Response()
answer.status_code, answer.url, answer._content = 200, address, terms
answer.headers.update(kind)
answer.request = requests.Request("GET", address).prepare()
answer.raw = urllib3.response.HTTPResponse(
    body=io.BytesIO(terms), headers=kind, status=200, preload_content=False, request_url=address
)
HttpRequester(cache_path=sys.argv[1]).session.cache.save_response(answer)
"""


@pytest.fixture(scope="module")
def certified(tmp_path_factory, network) -> Tree:
    """A copy with one experiment of the committed dataset, certified by Snakemake."""
    tree = Tree(copy_tree(tmp_path_factory.mktemp("certified") / "tree"), network)
    shutil.copytree(ROOT / FOLDER / "overhead", tree.path / FOLDER / "overhead")
    done = tree.snakemake("certify", dataset="reference").succeeded()
    assert "data/reference/ro-crate-metadata.json: " in done.text
    return tree


@pytest.fixture(params=["small", "committed"])
def folder(request) -> Path:
    """The folder of a certified dataset: that of the small copy, and the one that git keeps."""
    if request.param == "committed":
        return ROOT / FOLDER
    return request.getfixturevalue("certified").path / FOLDER


def graph(folder: Path) -> dict[str, dict]:
    nodes = json.loads((folder / "ro-crate-metadata.json").read_text())["@graph"]
    found = {node["@id"]: node for node in nodes}
    assert len(found) == len(nodes)
    return found


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if value.keys() == {"@id"}:
            yield value["@id"]
        for inner in value.values():
            yield from references(inner)
    if isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_sha256sum_agrees_with_each_checksum(folder):
    words = ["sha256sum", "--check", "--strict", "checksums.sha256"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "overhead/points.parquet: OK" in done.stdout and "CITATION.cff: OK" in done.stdout
    experiments = len(list(folder.glob("*/points.parquet")))
    assert experiments and len(done.stdout.splitlines()) >= 6 * experiments + 1
    assert list(checksums.wrong(folder)) == []


def test_the_crate_names_each_file_and_nothing_that_is_not_there(folder):
    nodes = graph(folder)
    assert nodes["ro-crate-metadata.json"]["conformsTo"]["@id"].endswith("/ro/crate/1.1")
    root = nodes["./"]
    assert root["@type"] == "Dataset" and {"name", "description", "license"} <= root.keys()
    named = {name for node in nodes.values() for name in references(list(node.values()))}
    specification = nodes["ro-crate-metadata.json"]["conformsTo"]["@id"]
    assert named - {specification} <= nodes.keys()
    files = {name: node for name, node in nodes.items() if node["@type"] == "File"}
    # The committed dataset may be unpacked in this clone.
    there = {p.relative_to(folder) for p in folder.rglob("*") if p.is_file()}
    shallow = {path.as_posix() for path in there if len(path.parts) <= 2}
    assert shallow - {"ro-crate-metadata.json", "complete"} == files.keys()
    for name, node in files.items():
        content = (folder / name).read_bytes()
        assert int(node["contentSize"]) == len(content)
        assert node["sha256"] == hashlib.sha256(content).hexdigest()


def test_the_crate_says_how_the_data_came_about(folder):
    nodes = graph(folder)
    trials = pl.concat(
        pl.read_parquet(path, columns=["server", "cpu", "kernel", "os", "started_at", "commit"])
        for path in folder.glob("*/trials.parquet")
    )
    root, measured = nodes["./"], nodes["#measured"]
    servers = trials["server"].n_unique()
    assert root["description"].count(f"{len(trials)} trials of {servers} servers") == 1
    for column in ("cpu", "kernel", "os"):
        assert trials[column][0] in root["description"]
    assert "Waived: DM-INTERLEAVED: " in root["description"]
    assert measured["startTime"] == f"{trials['started_at'].min():%Y-%m-%dT%H:%M:%SZ}"
    assert set(nodes["#deathmatch"]["version"].split(", ")) == set(trials["commit"])
    checked = nodes["#checked"]["description"]
    assert "data/reference: passed: " in checked and f" {len(trials)} trials, " in checked


def test_the_citation_is_of_the_dataset_and_refers_to_the_project(certified):
    cited = yaml.safe_load((certified.path / FOLDER / "CITATION.cff").read_text())
    project = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["type"] == "dataset" and cited["cff-version"] == project["cff-version"]
    assert cited["title"] == f"{project['title']}: dataset reference"
    assert cited["authors"] == project["authors"]
    assert [source["title"] for source in cited["references"]] == [project["title"]]
    assert "trials of" in cited["abstract"] and "commit" in cited["abstract"]
    version = project["version"]
    assert cited["version"] == version == graph(certified.path / FOLDER)["./"]["version"]
    assert [reference["version"] for reference in cited["references"]] == [version]


def test_what_a_checker_is_to_make_again_is_listed_and_their_part_left_to_them(folder):
    check = yaml.safe_load((folder / "codecheck.yml").read_text())
    assert check["version"].endswith("/spec/config/1.0/")
    files = [entry["file"] for entry in check["manifest"]]
    tables = {name for name in files if name.endswith(".parquet")}
    assert tables == {p.relative_to(folder).as_posix() for p in folder.glob("*/*.parquet")}
    assert "../../paper/reference/deathmatch.pdf" in files
    assert all(entry["comment"] for entry in check["manifest"])
    assert check["codechecker"] == [{"name": None, "ORCID": None}] and check["certificate"] is None


def test_the_committed_dataset_was_certified_by_a_version_with_release_notes():
    folder = ROOT / FOLDER
    version = graph(folder)["./"]["version"]
    assert yaml.safe_load((folder / "CITATION.cff").read_text())["version"] == version
    assert f"\n## Version {version}\n" in (ROOT / "experiments/CHANGELOG.md").read_text()


def test_unpacking_leaves_the_checksums_right(tmp_path):
    """The archive has a checksum; its trials, unpacked next to it, have none of their own."""
    packed, loose = tmp_path / "packed" / "raw.tar.xz", tmp_path / "loose" / "points.parquet"
    for file in (packed, loose):
        file.parent.mkdir()
        file.write_bytes(b"content")
    (tmp_path / checksums.NAME).write_text(checksums.text(tmp_path))
    for experiment in ("packed", "loose"):
        trial = tmp_path / experiment / "null" / "backlog=128" / "1" / "trial.json"
        trial.parent.mkdir(parents=True)
        trial.write_text("{}")
    found = [("loose/null/backlog=128/1/trial.json", "it has no checksum")]
    assert list(checksums.wrong(tmp_path)) == found


def test_certified_again_it_is_the_same_and_a_signed_check_is_kept(certified, tmp_path):
    folder = certified.path / FOLDER
    before = {name: (folder / name).read_bytes() for name in MADE}
    file = folder / "codecheck.yml"
    certified.deathmatch("certify", "reference").succeeded()
    assert {name: (folder / name).read_bytes() for name in MADE} == before
    file.write_text(file.read_text().replace("- name:", "- name: Ada Lovelace"))
    signed = file.read_text()
    try:
        certified.deathmatch("certify", "reference").succeeded()
        assert file.read_text() == signed
    finally:
        for name, content in before.items():
            (folder / name).write_bytes(content)


def test_a_dataset_that_does_not_pass_gets_none(certified, tmp_path):
    """Rejected and not to be checked are two statuses; each says why."""
    tree = Tree(tmp_path / "tree", certified.enter)
    shutil.copytree(certified.path, tree.path)
    for name in MADE:
        (tree.path / FOLDER / name).unlink()
    table = tree.path / FOLDER / "overhead" / "points.parquet"
    whole = table.read_bytes()
    pl.read_parquet(whole).with_columns(pl.col("replies") - 1).write_parquet(table)
    done = tree.deathmatch("certify", "reference").failed()
    assert done.status == 3 and "rejected: DM-VALUES, " in done.text
    assert "points.replies: " in done.text and "no certificate is written" in done.text
    table.write_bytes(whole)
    (tree.path / FOLDER / "overhead" / "raw.tar.xz").unlink()
    done = tree.deathmatch("check", "reference", "--strict", "--json").failed()
    assert done.status == 1
    report = json.loads(done.text[done.text.index("{") :])
    assert report["verdict"] == "could not be checked"
    assert [rule["id"] for rule in report["rules"] if rule["verdict"] == "unchecked"] == ["DM-RAW"]
    assert tree.deathmatch("certify", "reference").failed().status == 1
    assert not MADE & {path.name for path in (tree.path / FOLDER).iterdir()}


@pytest.mark.once
def test_another_program_finds_the_crate_valid(certified, tmp_path):
    """roc-validator, by those who wrote the profiles; it is fetched for this test alone."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    bin = tmp_path / "venv" / "bin"
    subprocess.run([bin / "pip", "install", "--quiet", *VALIDATOR], check=True)
    seed = tmp_path / "seed.py"
    seed.write_text(SEED)
    subprocess.run([bin / "python", seed, tmp_path / "cache"], check=True)
    for tree in (certified.path, ROOT):
        done = subprocess.run(
            [bin / "rocrate-validator", "--no-interactive", "validate", "--no-paging", "--offline",
             "--cache-path", tmp_path / "cache", "--profile-identifier", "ro-crate-1.1",
             "--output-format", "json", "--output-file", tmp_path / "said.json", Path(FOLDER)],
            cwd=tree, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        said = json.loads((tmp_path / "said.json").read_text())
        assert said["passed"] and said["issues"] == []
