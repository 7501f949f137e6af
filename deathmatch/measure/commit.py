"""The commit of this project that measures, as git knows it."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Commit:
    """A commit's name, with "-dirty" if files were changed; without one, the reason."""

    name: str | None
    unknown: str = ""

    def record(self) -> dict[str, str | None]:
        """Return it as `machine` of trial.json has it (`plan.record.Machine`)."""
        return {"commit": self.name} | ({"commit_unknown": self.unknown} if self.unknown else {})


def of(root: Path) -> Commit:
    """Return the commit that is checked out in `root`, an absolute path without symbolic links.

    Costs two processes of git. Neither the environment nor a repository around `root` changes the
    answer, and git answers whoever owns the folder: the code of that folder runs already.
    """
    try:
        top = _git(root, "rev-parse", "--show-toplevel")
        if top != str(root):
            return Commit(None, "the repository's files are in another folder")
        return Commit(_git(root, "describe", "--always", "--dirty", "--abbrev=12"))
    except FileNotFoundError:
        return Commit(None, "git is not installed")
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or [f"exit status {error.returncode}"]
        return Commit(None, f"git: {said[0]}".replace(str(root), "."))


def _git(root: Path, *words: str) -> str:
    # Variables such as GIT_DIR name another repository.
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CEILING_DIRECTORIES": str(root.parent), "LC_ALL": "C"}
    command = ["git", "-c", f"safe.directory={root}", "-c", "core.fsmonitor=false", "-C", str(root)]
    done = subprocess.run(
        [*command, *words], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
