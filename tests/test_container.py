"""The Containerfile's own steps, in a fresh Debian 12 that mmdebstrap makes from this machine's
mirror, and a trial in it with the capabilities that the file names.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import AS_ROOT, HUNG_S, ROOT, Done, project_files

FILE = ROOT / "Containerfile"
KNOWN = {"FROM", "COPY", "WORKDIR", "RUN", "ENTRYPOINT", "CMD"}
# What an engine gives a container: the default set that Docker and Podman document.
USUAL = [
    "chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap",
    "net_bind_service", "net_raw", "sys_chroot", "mknod", "audit_write", "setfcap",
]  # fmt: skip
# Nothing of the machine can be written in it. /proc/sys is as engines have it.
ENTER = """
caps=$1; root=$2; folder=$3; shift 3
mount --bind "$root" "$root"; cd "$root"
mount -t proc proc proc; mount -t sysfs -o ro sysfs sys; mount -t tmpfs tmpfs dev/shm
mkdir -p .old; pivot_root . .old; umount -l /.old
mount --bind /proc/sys /proc/sys; mount -o remount,ro,bind /proc/sys
cd "$folder"
exec setpriv --inh-caps=-all --bounding-set="-all,$caps" "$@"
"""
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
               "HOME": "/root", "LANG": "C.UTF-8"}  # fmt: skip
TRIAL = "data/smoke/backlog/null/backlog=128,schedulers=one,somaxconn=4096/1"


def steps() -> list[tuple[str, str]]:
    """Return the Containerfile's instructions, in order."""
    lines = [line for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def value(name: str) -> str:
    (found,) = [text for instruction, text in steps() if instruction == name]
    return found


def named_capabilities() -> list[str]:
    """Return those that the file says measuring takes, in setpriv's words."""
    line = next(line for line in FILE.read_text().splitlines() if "--cap-add=NET_ADMIN" in line)
    return [name.lower() for name in re.findall(r"--cap-add=(\w+)", line)]


def test_the_file_holds_nothing_that_the_test_below_would_leave_out():
    assert {instruction for instruction, _ in steps()} == KNOWN
    assert value("FROM") == "debian:12" and value("COPY") == f". {value('WORKDIR')}"
    (entry,) = json.loads(value("ENTRYPOINT"))
    assert os.access(ROOT / entry, os.X_OK)
    # What is built here would hide what is built there.
    assert "build" in (ROOT / ".containerignore").read_text().splitlines()


class Root:
    """A root folder of Debian 12 after the file's steps."""

    def __init__(self, path: Path):
        self.path = path

    def run(self, *words: str, capabilities: list[str], network: list[str] = ()) -> Done:
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", ENTER]
        caps = ",".join(f"+{name}" for name in capabilities)
        mine = {k: v for k, v in os.environ.items() if k.startswith(("PIP_", "SSL_", "TMPDIR"))}
        done = subprocess.run(
            [*network, *unshare, "sh", caps, str(self.path), value("WORKDIR"), *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=mine | ENVIRONMENT, timeout=HUNG_S,
        )  # fmt: skip
        return Done(done.returncode, done.stdout)


def debian(path: Path) -> None:
    """Make a minimal Debian 12, with the machine's own mirror and what it takes to reach it."""
    shown = ["apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)",
             "Created-By: Packages"]  # fmt: skip
    lines = subprocess.run(shown, capture_output=True, text=True, check=True).stdout.splitlines()
    sources = "\n".join(sorted({line for line in lines if " bookworm" in line and "main" in line}))
    settings = subprocess.run(["apt-config", "dump"], capture_output=True, text=True).stdout
    kept = [line for line in settings.splitlines() if re.match(r"Acquire::(Check|https?)", line)]
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase",
               *(f"--aptopt={line}" for line in kept), "bookworm", str(path), "-"]  # fmt: skip
    subprocess.run(command, input=sources, text=True, check=True, timeout=HUNG_S)
    # Copies: what is installed there writes into its own.
    trusted = path / "usr/local/share/ca-certificates"
    trusted.mkdir(parents=True, exist_ok=True)
    for file in Path("/usr/local/share/ca-certificates").glob("*.crt"):
        shutil.copy(file, trusted)
    for name in ("etc/resolv.conf", "etc/pip.conf"):
        if Path("/", name).exists():
            shutil.copyfile(Path("/", name), path / name)


@pytest.fixture(scope="module")
def container(tmp_path_factory) -> Root:
    if not AS_ROOT:
        pytest.skip("only root can make a Debian with device files")
    path = tmp_path_factory.mktemp("container") / "root"
    debian(path)
    made = Root(path)
    for instruction, text in steps():
        if instruction == "COPY":
            for name in project_files():
                to = path / value("WORKDIR").lstrip("/") / name
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, to)
        if instruction == "RUN":
            made.run("sh", "-c", text, capabilities=USUAL).succeeded()
    yield made
    shutil.rmtree(path)


@pytest.mark.container
def test_a_dry_run_needs_no_privilege(container):
    words = [*json.loads(value("ENTRYPOINT")), *json.loads(value("CMD"))]
    done = container.run(*words, capabilities=USUAL).succeeded()
    assert "set-up:" not in done.text and "trials, about" in done.text


@pytest.mark.container
def test_a_smoke_trial_needs_the_capabilities_that_the_file_names(container, network):
    named = named_capabilities()
    assert named == ["sys_admin", "net_admin"]
    words = ["./shell", "python", "-m", "deathmatch.measure.trial", TRIAL]
    for missing in named:
        rest = [name for name in named if name != missing]
        less = container.run(*words, capabilities=[*USUAL, *rest], network=network).failed()
        assert "deathmatch: testbed" in less.text
    done = container.run(*words, capabilities=[*USUAL, *named], network=network).succeeded()
    assert "1 of" in done.text
    record = container.path / value("WORKDIR").lstrip("/") / TRIAL / "trial.json"
    found = json.loads(record.read_text())
    assert found["outcome"] == "measured" and found["machine"]["os"].endswith("12 (bookworm)")


@pytest.mark.container
def test_the_paper_needs_no_privilege(container):
    """Of the committed dataset: one chapter of it, as all take minutes."""
    target = "paper/reference/notebooks/06-storage.ipynb"
    words = ["./shell", "snakemake", target, "--config", "dataset=reference"]
    container.run(*words, capabilities=USUAL).succeeded()
    assert (container.path / value("WORKDIR").lstrip("/") / target).exists()
