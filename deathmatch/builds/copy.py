"""A copy of this project on another machine: its files, its toolchain by `./shell`, its builds.

Only the files that measure are copied, without data and the sources of the paper. They replace
those of an earlier copy; its builds are kept. `deathmatch answer` there answers questions about it.
"""

import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deathmatch.errors import UserError
from deathmatch.hosts.host import Host
from deathmatch.hosts.opening import say
from deathmatch.hosts.testbed import Command
from deathmatch.load.generator import PROJECT
from deathmatch.plan import paths
from deathmatch.plan.paths import ROOT
from deathmatch.plan.server import Server
from deathmatch.plan.spec import Level

COPIED = (
    "bin", "clients", "config", "deathmatch", "experiments", "flake.lock", "flake.nix", "nix",
    "paper/source/references.bib", "pyproject.toml", "servers", "shell", "toolchains", "workflow",
)  # fmt: skip
# In the copy: {path: digest} of the files that were copied.
MANIFEST = ".copied.json"
_SHOWN_LINES = 20
_EVERY_S = 1.0


class Copy:
    """The copy on a host, updated and set up: a `hosts.testbed.Installation`.

    It is in the host's `folder`, relative to the home. Long steps are reported on standard error.
    """

    def __init__(self, host: Host, folder: str):
        self._host = host
        home = Path(host.run("sh", "-c", "cd && pwd").rstrip("\n"))
        self.root = home / folder / "checkout"
        self._answers: dict[str, Any] = {}
        self._update()
        pairs = (line.partition("=") for line in self._run("./shell", "env", "-0").split("\0"))
        host.environment = {name: value for name, separator, value in pairs if separator}

    def built(self, server: Server) -> dict:
        """Return the record of a server's build there, after building it if that is due."""
        return self._ask("built", server=server.name)

    def command(self, server: Server, values: Mapping[str, Level]) -> Command:
        """Return the command that starts a built server there."""
        command = self._ask("command", server=server.name, values=dict(values))
        return Command(command["words"], command["environment"], Path(command["folder"]))

    def located(self, words: Sequence[str]) -> list[str]:
        """Return a load generator's command, its first word the program's path on the host.

        Paths of the project in the other words become paths of the copy.
        """
        program = self._ask("located", words=list(words[:1]))
        return program + [word.replace(PROJECT, str(self.root)) for word in words[1:]]

    def clients(self, names: Sequence[str], where: str) -> dict[str, str]:
        """Build and check load generators there; return {name: version}."""
        return self._ask("clients", names=list(names), where=where)

    def harness(self) -> dict[str, str]:
        """Return `toolchain.harness` there."""
        return self._ask("harness")

    def _ask(self, what: str, **arguments: Any) -> Any:
        question = json.dumps({"what": what, **arguments}, sort_keys=True)
        if question not in self._answers:
            answer = json.loads(self._run("python", "-m", "deathmatch", "answer", question))
            if "mistake" in answer:
                problem, where, remedy = answer["mistake"]
                raise UserError(problem, f"host {self._host.name}, {where}", remedy)
            self._answers[question] = answer["answer"]
        return self._answers[question]

    def _run(self, *words: str) -> str:
        """Run a command in the copy; return its output, and print its standard error as it comes.

        Raises UserError with the last lines if it fails.
        """
        with tempfile.TemporaryDirectory() as folder:
            errors, shown, output = Path(folder, "errors"), 0, []
            process = self._host.start(words, output=errors, folder=self.root, talk=True)
            while (line := process.receive(_EVERY_S)) != "":
                output += [] if line is None else [line]
                process.collect()
                shown = self._show(errors, shown)
            status = process.wait()
            self._show(errors, shown)
            if status != 0:
                last = "\n".join(_lines(errors)[-_SHOWN_LINES:])
                raise UserError(
                    f"`{' '.join(words)}` ended with exit status {status}; it printed:\n{last}",
                    f"host {self._host.name}, {self.root}",
                    "fix the cause there, and run again: finished steps are kept",
                )
        return "".join(output)

    def _show(self, errors: Path, shown: int) -> int:
        """Print the lines after the first `shown`; return how many lines there are."""
        lines = _lines(errors)
        for line in lines[shown:]:
            say(f"host {self._host.name}: {line}")
        return len(lines)

    def _update(self) -> None:
        wanted = {str(path): _digest(ROOT / path) for path in files()}
        manifest = self.root / MANIFEST
        try:
            present = json.loads(self._host.read(manifest))
        except (OSError, ValueError):
            present = {}
        changed = [path for path, digest in wanted.items() if present.get(path) != digest]
        removed = sorted(present.keys() - wanted.keys())
        if not changed and not removed:
            return
        place = f"{self._host.name}:{self.root}"
        say(f"host {self._host.name}: copying {len(changed)} files to {place}")
        packed = self._host.folder / "project.tar"
        self._host.make_folder(self.root)
        # Removed first, so that no manifest describes an incomplete copy.
        self._host.run("rm", "-f", str(manifest))
        self._host.write(packed, _packed(changed))
        self._host.run("tar", "-xf", str(packed), "-C", str(self.root))
        self._host.run("rm", "-f", str(packed), *(str(self.root / path) for path in removed))
        self._host.write(manifest, json.dumps(wanted).encode())


def _lines(file: Path) -> list[str]:
    return file.read_text(errors="replace").splitlines() if file.exists() else []


def files() -> list[Path]:
    """Return the files to copy, `paths.below` COPIED, relative to the project's root, sorted."""
    every = [path for name in COPIED for path in paths.below(ROOT / name)]
    return sorted(path.relative_to(ROOT) for path in every)


def _digest(path: Path) -> str:
    mode = "x" if path.stat().st_mode & 0o100 else "-"
    return mode + hashlib.sha256(path.read_bytes()).hexdigest()


def _packed(names: Sequence[str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", dereference=True) as archive:
        for name in names:
            archive.add(ROOT / name, name)
    return packed.getvalue()
