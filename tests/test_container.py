"""The Containerfile, built and run by Podman as its comment says, on Debian 12 and on Debian 13."""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import engine as podman
import pytest
from conftest import AS_ROOT, ROOT, Done, project_files

FILE = ROOT / "Containerfile"
IMAGE = "deathmatch"
RECORD = "data/smoke/backlog/null/backlog=128,schedulers=one,somaxconn=4096/1/trial.json"
TRIAL = os.path.dirname(RECORD)
SMOKE = ["--config", "dataset=smoke", "servers=null"]
# Building and setting up download by this machine's network; measuring has no network.
ONLINE = "--network=host"
# An ordinary user whom the machine does not have.
USER = 64123
PLANTED = ["build/planted", "data/mine/planted", "paper/mine/planted"]

pytestmark = pytest.mark.container


def documented(part: str) -> list[str]:
    """Return the words after `podman` of the one command in the file's comment with this part."""
    lines = re.findall(r"^#   podman (.*?)(?:   .*)?$", FILE.read_text(), re.M)
    (line,) = [line for line in lines if part in line]
    return shlex.split(line)


def instead_of_privileged() -> list[str]:
    """Return the options that the file names for measuring without --privileged."""
    (line,) = re.findall(r"^# +(--cap-add=SYS_ADMIN .*)$", FILE.read_text(), re.M)
    return line.split()


@pytest.fixture(scope="module")
def place():
    """A folder that any user can enter."""
    if not AS_ROOT:
        pytest.skip("only root can make a Debian with device files")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def clone(place: Path) -> Path:
    """An ordinary user's clone of the project as it stands, with a build and an own dataset."""
    folder = place / "clone"
    for name in project_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    author = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    commit = [*author, "commit", "--quiet", "--message=test"]
    for words in (["init", "--quiet"], ["add", "--all"], commit):
        subprocess.run(["git", *words], cwd=folder, check=True)
    for name in PLANTED:
        (folder / name).parent.mkdir(parents=True)
        (folder / name).touch()
    subprocess.run(["chown", "--recursive", f"{USER}:{USER}", folder], check=True)
    return folder


@pytest.fixture(scope="module")
def engine(place: Path, clone: Path) -> podman.Engine:
    """Podman for root with the image, built as the file's comment says."""
    created = podman.create(place / "engine")
    podman.base_image(created, "bookworm", "12")
    build, *words = documented("build")
    created.run(build, ONLINE, *words, folder=clone).succeeded()
    return created


def run_documented(engine: podman.Engine, clone: Path, words: list[str], *options: str) -> Done:
    """Run a documented `podman run`, with more options before its own."""
    run, *rest = words
    return engine.run(run, *options, *rest, folder=clone)


def in_image(engine: podman.Engine, clone: Path, *words: str) -> Done:
    return engine.run("run", "--rm", IMAGE, *words, folder=clone)


def record(text: str) -> dict:
    """Return the trial's record that is printed at the end of the text."""
    return json.loads(text[text.index("\n{") :])


def test_the_image_holds_the_projects_files_and_no_others_of_the_clone(engine, clone):
    listed = in_image(engine, clone, "git", "ls-files", "--cached", "--others").succeeded()
    assert set(listed.text.splitlines()) >= set(map(str, project_files()))
    changed = in_image(engine, clone, "git", "status", "--short", "--ignored").succeeded()
    assert changed.text == "!! build/\n"
    assert in_image(engine, clone, "test", "!", "-e", PLANTED[0]).succeeded()
    # A dry run needs no privilege.
    done = run_documented(engine, clone, documented("snakemake -n")).succeeded()
    assert "set-up:" not in done.text and "trials, about" in done.text


def test_measuring_needs_the_capabilities_that_the_file_names(engine, clone):
    options = instead_of_privileged()
    named = [option for option in options if option.startswith("--cap-add=")]
    assert len(named) == 2
    command = ["run", "--rm", IMAGE, "deathmatch", "trial", TRIAL]
    for missing in named:
        fewer = [option for option in options if option != missing]
        assert "deathmatch: testbed" in run_documented(engine, clone, command, *fewer).failed().text
    script = f"deathmatch trial {shlex.quote(TRIAL)} && cat {shlex.quote(RECORD)}"
    command = ["run", "--rm", IMAGE, "sh", "-c", script]
    found = record(run_documented(engine, clone, command, *options).succeeded().text)
    assert found["outcome"] == "measured" and found["machine"]["os"].endswith("12 (bookworm)")


def test_the_paper_of_a_mounted_clone_needs_no_privilege(engine, clone):
    """Of the committed dataset: one chapter of it, as all take minutes."""
    target = "paper/reference/notebooks/06-storage.ipynb"
    words = documented("snakemake paper")
    assert words.pop() == "paper"
    words += [target, "--config", "dataset=reference"]
    run_documented(engine, clone, words, ONLINE).succeeded()
    assert (clone / target).exists()


def test_a_mounted_clone_of_an_ordinary_user_is_measured(engine, clone):
    words = documented("--privileged")
    words.remove("-it")
    assert words.pop() == "snakemake"
    # The set-up, in the clone's own folder `build`.
    run_documented(engine, clone, [*words, "true"], ONLINE).succeeded()
    done = run_documented(engine, clone, [*words, "snakemake", *SMOKE]).succeeded()
    assert "failed: nothing; 5 of 5 trials measured" in done.text
    assert (clone / "paper/smoke/report.pdf").exists()
    found = json.loads((clone / RECORD).read_text())
    assert found["machine"]["commit"].removesuffix("-dirty")


def test_debian_13_measures(engine, clone):
    """The same steps on another release, and the clone that Debian 12 set up."""
    podman.base_image(engine, "trixie", "13")
    newer = f"{IMAGE}-13"
    words = ["--from=debian:13", f"--tag={newer}", "."]
    engine.run("build", ONLINE, *words, folder=clone).succeeded()
    script = f"snakemake {' '.join(SMOKE)} && cat {shlex.quote(RECORD)}"
    words = ["run", "--rm", newer, "sh", "-c", script]
    done = run_documented(engine, clone, words, *instead_of_privileged()).succeeded()
    assert "failed: nothing; 5 of 5 trials measured" in done.text
    found = record(done.text)
    assert found["machine"]["os"].endswith("13 (trixie)")
    words = ["run", "--rm", "-v", ".:/deathmatch", newer, "python", "--version"]
    assert "Python 3.13." in run_documented(engine, clone, words, ONLINE).succeeded().text
