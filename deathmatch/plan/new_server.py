"""Start a server's folder from a template: `./shell deathmatch new-server NAME [--kind KIND]`."""

import argparse
import re
import shlex
import shutil
import tomllib
from pathlib import Path

from deathmatch.errors import UserError, as_typed, suggestions
from deathmatch.plan import files, own_dataset, paths
from deathmatch.plan.paths import ROOT

TEMPLATES = ROOT / "servers" / "_template"
KINDS = {
    "one-request": "one request a connection",
    "keep-alive": "several requests a connection",
    "websocket": "WebSocket",
}
"""The kinds of servers, each with a folder in the templates."""

GIVEN_UP = ("factors", "limits", "deviations")
"""Keys of a template that hold for its own server only."""


def main(given: argparse.Namespace) -> int:
    """Make `servers/NAME/`, ready to be measured; UserError if it cannot be made."""
    name, kind = given.name, given.kind
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        what = f"{name!r} cannot be the name of a server"
        raise UserError(what, "new-server", "use lower-case letters, digits, hyphens and dots")
    folder = files.path_of("server", name).parent
    if folder.exists():
        what = f"{folder.relative_to(ROOT)} exists"
        raise UserError(what, "new-server", "choose another name")
    if kind not in KINDS:
        raise UserError(
            f"there is no kind {kind!r} of server", "new-server", suggestions(kind, KINDS)
        )
    words = words_of(given.command) if given.command else []
    shutil.copytree(TEMPLATES / kind, folder)
    toml = folder / "server.toml"
    text = toml.read_text().replace("NAME", name)
    toml.write_text(_with_command(text, words, folder) if words else text)
    print(advice(name, kind, given.command))
    return 0


def words_of(command: str) -> list[str]:
    """Return the words of the user's command; UserError if it cannot start a server."""
    where = f"`{command}`"
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UserError(f"no command: {error}", where, "quote it for a shell") from None
    if "{port}" not in command:
        raise UserError("the command has no {port}", where, "write {port} for its port")
    return words


def _with_command(text: str, words: list[str], folder: Path) -> str:
    """Return the text of server.toml with the user's command; copy the command's files."""
    (folder / "server.py").unlink(missing_ok=True)
    program = words[0]
    for place, word in enumerate(words):
        file = paths.of_caller() / word
        if file.is_file():
            shutil.copy(file, folder)
            words[place] = f"{{folder}}/{file.name}"
    name = Path(program).name
    version = "echo unknown" if words[0] != program else f"{name} --version || echo unknown"
    changed = {
        "language": name, "version": version,
        "run": " ".join(word if "{" in word else shlex.quote(word) for word in words),
    }  # fmt: skip
    spec = tomllib.loads(text) | changed
    spec |= {"packages": {"tools": [] if words[0] != program else [name]}}
    return own_dataset.text({key: spec[key] for key in spec if key not in GIVEN_UP}, {})


def experiments(kind: str) -> list[str]:
    """Return the experiments that the template of a kind serves."""
    return tomllib.loads((TEMPLATES / kind / "server.toml").read_text())["experiments"]


def advice(name: str, kind: str, command: str | None = None) -> str:
    """Return what was made and what to type next; `command` is the user's, if one was given."""
    measure = f"snakemake --config dataset=smoke servers={name}"
    small = "it holds a small Python server: put yours in its place."
    made = f"it starts your command: {command}" if command else small
    lines = [
        f"servers/{name}/ is there; {made}",
        f"  its kind is {kind}, {KINDS[kind]}; it serves {', '.join(experiments(kind))}",
        f"  other kinds: --kind, one of {', '.join(KINDS)}",
        f"  {as_typed(f'deathmatch build {name}')}",
        "      builds it and shows its version",
        f"  {as_typed(f'deathmatch check-server {name}')}",
        "      checks its answers, in seconds",
        f"  {as_typed(f'deathmatch measure {name}')}",
        "      compares it with other servers in ten minutes, writes its card",
        f"  {as_typed(measure)}",
        "      measures it in all that it serves, writes the paper",
        "  servers/README.md explains every key and placeholder of server.toml",
    ]
    return "\n".join(lines)
