"""Podman with its images and settings in one folder, and base images that mmdebstrap makes.

The machine's own Podman is neither read nor changed.
"""

import re
import resource
import subprocess
from dataclasses import dataclass
from pathlib import Path

from conftest import HUNG_S, Done

CONTAINERS = """
[containers]
# Root without CAP_SYS_RESOURCE may not raise its limits, and Podman's defaults would.
default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]
# Without these two, Podman leaves cgroups, bridges and firewall rules on the machine.
cgroups = "disabled"
netns = "none"
[engine]
tmp_dir = "{folder}/run/libpod"
"""
STORAGE = """
[storage]
driver = "overlay"
graphroot = "{folder}/images"
runroot = "{folder}/run/containers"
"""
# crun refuses a machine with both versions of cgroups. Podman finds its run folder empty, as after
# a restart.
ENTER = """
folder=$1; shift
! mountpoint -q /sys/fs/cgroup/unified || umount /sys/fs/cgroup/unified
mount -t tmpfs -o mode=700 tmpfs "$folder/run"
exec "$@"
"""
# All that a call starts ends with it.
PRIVATE = [
    "setpriv", "--pdeathsig", "KILL",
    "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
]  # fmt: skip


@dataclass(frozen=True)
class Engine:
    """Podman for root, with `folder` for all that it keeps."""

    folder: Path

    def command(self, *words: str | Path) -> list[str]:
        """Return the words that run `podman WORDS...`."""
        return [*PRIVATE, "sh", "-ec", ENTER, "sh", str(self.folder), "podman",
                *map(str, words)]  # fmt: skip

    def environment(self) -> dict[str, str]:
        return {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "XDG_RUNTIME_DIR": f"{self.folder}/run",
            "CONTAINERS_CONF": f"{self.folder}/containers.conf",
            "CONTAINERS_STORAGE_CONF": f"{self.folder}/storage.conf",
        }

    def run(self, *words: str | Path, folder: Path) -> Done:
        """Run `podman WORDS...` in a folder."""
        done = subprocess.run(
            self.command(*words), cwd=folder, env=self.environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HUNG_S,
        )  # fmt: skip
        return Done(done.returncode, done.stdout)


def create(folder: Path) -> Engine:
    """Return an engine with an empty folder and its settings."""
    (folder / "run").mkdir(parents=True)
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    _, processes = resource.getrlimit(resource.RLIMIT_NPROC)
    most = 32768
    processes = most if processes == resource.RLIM_INFINITY else min(processes, most)
    settings = {"folder": folder, "files": files, "processes": processes}
    (folder / "containers.conf").write_text(CONTAINERS.format(**settings))
    (folder / "storage.conf").write_text(STORAGE.format(**settings))
    return Engine(folder)


def sources(suite: str) -> str:
    """Return apt's lines for the main part of a suite, from this machine's own mirror of Debian."""
    shown = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)",
             "Created-By: Packages"]  # fmt: skip
    listed = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
    (own,) = re.findall(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), re.M)
    lines = {
        f"deb {uri} {release.replace(own, suite)} main"
        for uri, release, component in map(str.split, listed.splitlines())
        if component == "main" and release.startswith(own)
    }
    return "\n".join(sorted(lines))


def base_image(engine: Engine, suite: str, version: str) -> None:
    """Make `debian:VERSION` of a suite, with what this machine needs to reach its registries."""
    settings = subprocess.run(["apt-config", "dump"], capture_output=True, text=True).stdout
    kept = [line for line in settings.splitlines() if re.match(r"Acquire::(Check|https?)", line)]
    copied = [
        f"--customize-hook=copy-in {place} {place.parent}"
        for place in (Path("/etc/pip.conf"), Path("/usr/local/share/ca-certificates"))
        if place.exists()
    ]
    root = engine.folder / "root.tar"
    subprocess.run(
        ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", *copied,
         *(f"--aptopt={line}" for line in kept), suite, root, "-"],
        input=sources(suite), text=True, check=True, timeout=HUNG_S,
    )  # fmt: skip
    name = f"docker.io/library/debian:{version}"
    engine.run("import", "--quiet", root, name, folder=engine.folder).succeeded()
    root.unlink()
