"""This project on another machine: its files, the toolchain that its `./shell` sets up, its builds.

What is copied are the files that measure: neither data nor what makes a paper of it. They replace
those of an earlier copy; what was built there stays. What is then asked of the copy, its own
`deathmatch answer` says.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from deathmatch.errors import UserError
from deathmatch.hosts.host import Host
from deathmatch.hosts.installation import Command
from deathmatch.load.generator import PROJECT
from deathmatch.plan.root import ROOT
from deathmatch.plan.server import Server
from deathmatch.plan.spec import Level

COPIED = (
    "bin", "clients", "config", "deathmatch", "experiments", "flake.lock", "flake.nix", "nix",
    "paper/source/references.bib", "pyproject.toml", "servers", "shell", "toolchains", "workflow",
)  # fmt: skip
# In the copy: what it was copied from.
MANIFEST = ".copied.json"
_SHOWN_LINES = 20
_EVERY_S, _PATIENCE_S = 1.0, 60.0
ANSWER = ("python", "-m", "deathmatch", "answer")


class Copy:
    """The copy on a host, up to date and set up: `hosts.installation.Installation`.

    It is in the host's `folder`, relative to the home. `tell` is told what takes long.
    """

    def __init__(self, host: Host, folder: str, tell: Callable[[str], None]):
        self._host, self._tell = host, tell
        home = Path(host.run("sh", "-c", "cd && pwd").rstrip("\n"))
        self.root = home / folder / "checkout"
        self._answers: dict[str, Any] = {}
        self._update()
        self._asked: _Told | None = None
        text = _Told(host, self.root, tell, ["./shell", "env", "-0"]).read()
        pairs = (line.partition("=") for line in text.split("\0") if "=" in line)
        host.environment = {name: value for name, _, value in pairs}

    def built(self, server: Server) -> dict:
        """Return what came of the server's build there, building it first if that is due."""
        return self._ask("built", server=server.name)

    def command(self, server: Server, values: Mapping[str, Level]) -> Command:
        """Return how a built server is started there."""
        found = self._ask("command", server=server.name, values=dict(values))
        self._rest()
        return Command(found["words"], found["environment"], Path(found["folder"]))

    def located(self, words: Sequence[str]) -> list[str]:
        """Return a load generator's command with its first word as the host finds the program.

        A file of the project that another word names is that of the copy.
        """
        found = self._ask("located", words=list(words[:1]))
        self._rest()
        return found + [word.replace(PROJECT, str(self.root)) for word in words[1:]]

    def clients(self, names: Sequence[str], where: str) -> dict[str, str]:
        """Build and check those load generators there; return what each says of its version."""
        return self._ask("clients", names=list(names), where=where)

    def harness(self) -> dict[str, str]:
        """Return what the trials there run on, as `toolchain.harness`."""
        return self._ask("harness")

    def _ask(self, what: str, **arguments: Any) -> Any:
        question = json.dumps({"what": what, **arguments}, sort_keys=True)
        if question not in self._answers:
            if self._asked is None:
                self._asked = _Told(self._host, self.root, self._tell, ANSWER)
            answer = json.loads(self._asked.say(question))
            if "mistake" in answer:
                what, where, remedy = answer["mistake"]
                raise UserError(what, f"host {self._host.name}, {where}", remedy)
            self._answers[question] = answer["answer"]
        return self._answers[question]

    def _rest(self) -> None:
        """End what answers: from now on all that runs there is measured."""
        if self._asked:
            self._asked.end()
            self._asked = None

    def _update(self) -> None:
        wanted = {str(path): _digest(ROOT / path) for path in files()}
        manifest = self.root / MANIFEST
        try:
            there = json.loads(self._host.read(str(manifest)))
        except (OSError, ValueError):
            there = {}
        changed = [path for path, digest in wanted.items() if there.get(path) != digest]
        gone = sorted(there.keys() - wanted.keys())
        if not changed and not gone:
            return
        place = f"{self._host.name}:{self.root}"
        self._tell(f"host {self._host.name}: copying {len(changed)} files to {place}")
        packed = self._host.folder / "project.tar"
        self._host.make_folder(self.root)
        # What is half copied is of no manifest.
        self._host.run("rm", "-f", str(manifest))
        self._host.write(packed, _packed(changed))
        self._host.run("tar", "-xf", str(packed), "-C", str(self.root))
        if gone:
            self._host.run("rm", "-f", *(str(self.root / path) for path in gone))
        self._host.run("rm", str(packed))
        self._host.write(manifest, json.dumps(wanted).encode())


class _Told:
    """A command in a copy, whose standard error is told as it comes."""

    def __init__(
        self, host: Host, root: Path, tell: Callable[[str], None], words: Sequence[str]
    ):  # fmt: skip
        self._host, self._root, self._tell, self._words = host, root, tell, words
        self._log, self._shown = Path(host.folder, f"told-{words[-1]}"), 0
        script = f'exec "$@" 2>"{self._log}"'
        self._process = host.start(["sh", "-c", script, "sh", *words], folder=root, talk=True)

    def say(self, line: str) -> str:
        """Tell it something; return the line that it answers with."""
        self._process.send(f"{line}\n")
        return self._next() or self._fail()

    def read(self) -> str:
        """Return all that it prints, once it has ended."""
        said = []
        while line := self._next():
            said.append(line)
        if self._process.wait() != 0:
            self._fail()
        self._host.run("rm", "-f", str(self._log))
        return "".join(said)

    def end(self) -> None:
        """End its input, and wait for its end."""
        self._process.finish(_PATIENCE_S)

    def _next(self) -> str:
        while (line := self._process.receive(_EVERY_S)) is None:
            self._show()
        self._show()
        return line

    def _show(self) -> None:
        lines = self._text().splitlines()
        for line in lines[self._shown :]:
            self._tell(f"host {self._host.name}: {line}")
        self._shown = len(lines)

    def _text(self) -> str:
        try:
            return self._host.read(str(self._log))
        except FileNotFoundError:
            # It has not begun.
            return ""

    def _fail(self) -> NoReturn:
        status = self._process.wait()
        last = "\n".join(self._text().splitlines()[-_SHOWN_LINES:])
        raise UserError(
            f"`{' '.join(self._words)}` ended with exit status {status}; it said:\n{last}",
            f"host {self._host.name}, {self._root}",
            "mend the cause there, and run again: what is done is kept",
        )


def files() -> list[Path]:
    """Return what is copied, COPIED and below, relative to the project's root, sorted."""
    found = [
        path for name in COPIED for path in (ROOT / name, *(ROOT / name).rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    ]  # fmt: skip
    return sorted(path.relative_to(ROOT) for path in found)


def _digest(path: Path) -> str:
    mode = "x" if path.stat().st_mode & 0o100 else "-"
    return mode + hashlib.sha256(path.read_bytes()).hexdigest()


def _packed(names: Sequence[str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in names:
            archive.add(ROOT / name, name)
    return packed.getvalue()
