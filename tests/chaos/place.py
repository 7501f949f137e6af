"""A place to do harm in: a copy of the project on a small disk, and an eye on what is left there.

It has a network and a mount namespace, a disk, a home and a folder for temporary files of its own,
so that what a run leaves is told from what else the machine does.
"""

import hashlib
import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from conftest import AS_ROOT, Done, Tree, copy_tree, descendants, wait_for

REAPER = Path(__file__).with_name("reaper.py")
DISK_BYTES = 600_000_000
# /run is where `ip netns` keeps names, /dev/shm where libraries share memory.
_MAKE = """
ip link set lo up
mount --make-rprivate /
mount -t tmpfs -o size="$2" disk "$1"
mount -t tmpfs run /run
mount -t tmpfs shm /dev/shm
echo ready
exec sleep infinity
"""


@dataclass
class Going:
    """A command that goes on in a place: its reaper, and what it wrote by now."""

    reaper: subprocess.Popen
    output: Path
    status_file: Path

    @property
    def pid(self) -> int | None:
        """The command's own pid; None before it has begun."""
        return next((one.pid for one in children(self.reaper.pid)), None)

    def below(self) -> list[psutil.Process]:
        """Return all that runs of it."""
        return descendants(self.reaper.pid)

    def over(self) -> bool:
        """Return whether nothing of it runs any more."""
        return self.reaper.poll() is not None

    def done(self) -> Done:
        """Wait until nothing of it runs; return the command's status and what was written."""
        wait_for(self.over, f"all has ended, not {self.below()}")
        return Done(int(self.status_file.read_text()), self.output.read_text(errors="replace"))


def children(pid: int) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children()
    return []


@dataclass
class Place:
    """The tree of a place, as seen from outside of it, and how to do something there."""

    tree: Tree
    inside: Path
    holder: subprocess.Popen
    environment: dict[str, str] = field(default_factory=dict)
    runs: int = 0

    def start(self, *words: str) -> Going:
        """Start a command in the tree."""
        self.runs += 1
        # Not on the disk, which may be full.
        out = self.inside.parent.parent / f"{self.runs}.log"
        status = out.with_suffix(".status")
        with out.open("w") as output:
            reaper = subprocess.Popen(
                [*self.tree.enter, "python3", REAPER, status, *words],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env=os.environ | self.environment,
            )  # fmt: skip
        return Going(reaper, out, status)

    def snakemake(self, *words: str, **config: str) -> Going:
        """Start a run."""
        settings = [f"{key}={value}" for key, value in config.items()]
        return self.start("snakemake", *words, *(["--config", *settings] if settings else []))

    def looked(self, *words: str) -> str:
        """Return what a command says in the place's namespaces."""
        enter = ["nsenter", "--net", "--mount", "--target", str(self.holder.pid)]
        return subprocess.run([*enter, *words], capture_output=True, text=True, check=True).stdout

    def machine(self) -> dict[str, str]:
        """Return what the place's namespaces show of links, names, mounts, locks."""
        proc = Path("/proc", str(self.holder.pid))
        return {
            "links": self.looked("ip", "-o", "link"),
            "names of network namespaces": self.looked("ip", "netns", "list"),
            "mounts": (proc / "mountinfo").read_text(),
            "locks": str((proc / "net" / "unix").read_text().count("@deathmatch-testbed")),
            "shared memory": self.looked("ls", "/dev/shm"),
        }

    def temporary(self) -> list[str]:
        """Return the temporary and half-made files that runs left, relative to the place."""
        here = self.tree.path.parent
        found = [*(here / "tmp").rglob("*"), *self.tree.path.glob("data/**/.*.partial")]
        for pattern in ("**/*.part", "**/*.new", ".snakemake/locks/*", ".snakemake/incomplete/*"):
            found += self.tree.path.glob(pattern)
        found += [path for path in self.tree.path.glob("build/aside/*") if path.suffix != ".lock"]
        found += [path for path in (here / "home").rglob("*") if path.is_file()]
        return sorted(str(path.relative_to(here)) for path in found)

    def finished(self, dataset: str) -> dict[str, str]:
        """Return {folder: checksum of all of its files} of the finished trials of a dataset."""
        found = {}
        for record in sorted(self.tree.path.glob(f"data/{dataset}/*/*/*/[0-9]*/trial.json")):
            folder, digest = record.parent, hashlib.sha256()
            for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
            found[str(folder.relative_to(self.tree.path))] = digest.hexdigest()
        return found

    def fill(self) -> Path:
        """Fill the disk to the last byte; return the file that does."""
        filler = self.tree.path.parent / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"\0" * 65536)
        return filler

    def leave(self) -> None:
        """End it with all that it has."""
        for one in descendants(self.holder.pid):
            one.send_signal(signal.SIGKILL)
        self.holder.kill()
        self.holder.wait()


def make(folder: Path, disk_bytes: int = DISK_BYTES) -> Place:
    """Make a place below the folder."""
    disk = folder / "disk"
    disk.mkdir()
    user = [] if AS_ROOT else ["--user", "--map-root-user"]
    words = ["setpriv", "--pdeathsig", "KILL", "unshare", *user, "--net", "--mount"]
    holder = subprocess.Popen(
        [*words, "sh", "-ec", _MAKE, "sh", str(disk), str(disk_bytes)], stdout=subprocess.PIPE
    )
    assert holder.stdout.readline() == b"ready\n"
    outside = Path(f"/proc/{holder.pid}/root{disk}")
    for name in ("tree", "tmp", "home"):
        (outside / name).mkdir()
    copy_tree(outside / "tree")
    inside = disk / "tree"
    enter = ["nsenter", "--net", "--mount", "--target", str(holder.pid)]
    enter += [] if AS_ROOT else ["--user", "--preserve-credentials"]
    enter += ["--", "sh", "-c", 'cd "$0" && exec "$@"', str(inside)]
    environment = {
        "HOME": str(disk / "home"), "TMPDIR": str(disk / "tmp"),
        "PYTHONPATH": str(inside / "workflow" / "plugins"),
    }  # fmt: skip
    return Place(Tree(outside / "tree", enter, environment), inside, holder, environment)
