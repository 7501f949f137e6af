"""What measured: the machine, its programs, and the commit of this project as git knows it."""

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

    `read` returns a file of that machine (`hosts.hardware.describe`). `names` are the load
    generators used, as they are at `site`, and `where` what needs them: each has its version under
    its name. Costs a process for each of them, and two of git.
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
        """Return it as `machine` of trial.json has it (`plan.record.Machine`)."""
        return {"commit": self.name} | ({"commit_unknown": self.unknown} if self.unknown else {})


def commit_of(root: Path) -> Commit:
    """Return the commit that is checked out in `root`, an absolute path without symbolic links.

    Costs two processes of git. Neither the environment nor a repository around `root` changes the
    answer, and git answers whoever owns the folder: the code of that folder runs already.
    """
    try:
        top = paths.git(root, "rev-parse", "--show-toplevel")
        if top != str(root):
            return Commit(None, "the repository's files are in another folder")
        # No tag: its name may be any other, and end in "-dirty".
        words = ["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
        return Commit(paths.git(root, *words))
    except FileNotFoundError:
        return Commit(None, "git is not installed")
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or [f"exit status {error.returncode}"]
        return Commit(None, f"git: {said[0]}".replace(str(root), "."))
