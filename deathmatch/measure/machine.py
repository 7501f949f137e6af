"""The record of what measured: the machine, its programs, and the commit of this project."""

import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deathmatch.builds import toolchain
from deathmatch.hosts import hardware
from deathmatch.hosts.testbed import Installation
from deathmatch.plan import paths
from deathmatch.plan.paths import ROOT


def about(
    read: Callable[[str], str], site: Installation, names: Sequence[str] = (), where: str = ""
) -> dict:
    """Return the server's machine and the toolchain, for trial.json.

    `read` reads a file of that machine (`hosts.hardware.describe`). The versions of the load
    generators `names` at `site` are recorded by name; `where` names what needs them. Starts a
    process for each of them, and two of git.
    """
    return {
        **hardware.describe(read),
        "toolchain": toolchain.name(),
        "python": platform.python_version(),
        **site.clients(names, where),
        "snakemake": os.environ.get("DEATHMATCH_SNAKEMAKE", ""),
        **commit_of(ROOT).record(),
    }


@dataclass(frozen=True)
class Commit:
    """A commit's name, with "-dirty" if files were changed; without one, the reason."""

    name: str | None
    unknown: str = ""

    def record(self) -> dict[str, str | None]:
        """Return the record for `machine` of trial.json (`plan.record.Machine`)."""
        return {"commit": self.name} | ({"commit_unknown": self.unknown} if self.unknown else {})


def commit_of(root: Path) -> Commit:
    """Return the commit that is checked out in `root`, an absolute path without symbolic links.

    Starts two processes of git. The environment, a repository around `root` and the folder's owner
    do not change the answer.
    """
    try:
        top = paths.git(root, "rev-parse", "--show-toplevel")
        if top != str(root):
            return Commit(None, "the repository's files are in another folder")
        # Without tags, whose names may end in "-dirty".
        words = ["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
        return Commit(paths.git(root, *words))
    except FileNotFoundError:
        return Commit(None, "git is not installed")
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or [f"exit status {error.returncode}"]
        return Commit(None, f"git: {said[0]}".replace(str(root), "."))
