"""Start the agent: by ssh on another machine, by a command in namespaces of this one.

Names, keys, jump hosts and known hosts are the user's, as in `ssh ALIAS`. Our options only keep ssh
from prompting, accepting an unknown host key, or sharing another connection.
"""

import io
import json
import re
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence

from deathmatch.agent import session, wire
from deathmatch.agent.keeper import Settings
from deathmatch.errors import UserError
from deathmatch.hosts.connection import Connection, NoAgent, Refused
from deathmatch.hosts.host import Host

OPTIONS = (
    "-T", "-x", "-a",
    "-o", "BatchMode=yes",
    "-o", "StrictHostKeyChecking=yes",
    "-o", "ConnectTimeout=10",
    "-o", "ControlPath=none",
    "-o", "ClearAllForwardings=yes",
    "-o", "LogLevel=ERROR",
)  # fmt: skip
DEFAULTS = Settings()
NO_PYTHON, NOT_SET_UP = 96, 97
_SSH_FAILED = 255

_FAULTS = (
    (r"Could not resolve hostname", "ssh knows no such host: {said}",
     "write a section `Host {alias}` with its HostName into ~/.ssh/config, or correct the name"),
    (r"Host key verification failed|HOST IDENTIFICATION HAS CHANGED",
     "its host key is not the one known, or none is known",
     "run `ssh {alias}` once by hand and compare the key with the machine's own"),
    (r"Permission denied", "it refuses every key that ssh offers: {said}",
     "`ssh-copy-id {alias}`, or `ssh-add` if the key has a passphrase: `ssh -o BatchMode=yes "
     "{alias} true` must succeed"),
    (r"timed out|refused|No route|unreachable|Connection (closed|reset)",
     "it cannot be reached: {said}", "see whether it is up, and whether `ssh {alias}` works"),
)  # fmt: skip


_REFUSALS = {
    "python": ("its Python is {detail}, and the agent needs 3.11",
               "install a newer one there and name it"),
    "busy": ("another controller holds this host", "wait for it to end, or end it"),
    "namespaces": ("no permission to make namespaces there: {detail}",
                   "log in there as root, or let users make namespaces: sysctl "
                   "kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000 "
                   "(on Ubuntu also kernel.apparmor_restrict_unprivileged_userns=0)"),
    "folder": ("no folder for the agent there: {detail}",
               "name another folder, one that you may write to"),
}  # fmt: skip
"""{reason why an agent cannot work: (what is wrong, what to do)}"""


def say(text: str) -> None:
    """Print a line to standard error."""
    # In one write, as several hosts may be opened at the same time.
    print(f"{text}\n", end="", file=sys.stderr)


def ssh(
    alias: str, *, name: str | None = None, folder: str = DEFAULTS.folder, python: str = "python3",
    program: Sequence[str] = ("ssh",), silence_s: float = wire.SILENCE_S,
    wait_s: float = DEFAULTS.wait_s, tell: Callable[[str], None] = say,
) -> Host:  # fmt: skip
    """Return the host that `ssh ALIAS` reaches; the first connection sets it up.

    Set-up copies the agent's files into `folder`, relative to the home there; each version of them
    has a folder of its own. `python` is the interpreter there, 3.11 or later; `program` is the ssh
    program, with options before ours. Each end considers the other lost after `silence_s`. If
    another controller holds the host, waits for it up to `wait_s`. Raises UserError for a mistake
    that the user can fix.
    """
    name = name or alias
    words = [*program, *OPTIONS, "--", alias]
    script = _entering(folder, python, Settings(folder, silence_s, wait_s))
    for attempt in range(2):
        try:
            agent = Connection(name, [*words, script], silence_s)
            break
        except Refused as error:
            raise _refusal(name, error) from None
        except FileNotFoundError as error:
            raise UserError(f"{error.filename} is not installed", f"host {name}",
                            "install OpenSSH's client") from None  # fmt: skip
        except NoAgent as error:
            if error.status != NOT_SET_UP or attempt:
                raise _fault(alias, name, python, error) from None
            made = f"{alias}:{_agent_folder(folder)}"
            tell(f"host {name}: first connection of this version, copying the agent to {made}")
            _set_up(alias, name, [*words, _unpacking(folder)])
    if agent.hello["code"] != session.digest():
        agent.close()
        removing = f"rm -r {shlex.quote(_agent_folder(folder))}"
        raise UserError(
            "the agent's files there are not those that were copied", f"host {name}",
            f"remove them, they are copied again: ssh {alias} {shlex.quote(removing)}",
        )  # fmt: skip
    _report_restored(agent, tell)
    return Host(agent, [*program, "-T", alias], quoted=True)


def through(
    name: str, words: Sequence[str], settings: Settings = DEFAULTS,
    tell: Callable[[str], None] = say,
) -> Host:  # fmt: skip
    """Return the host that a command of this machine enters; without words, this machine itself.

    The host has this machine's files, and the agent is this clone's. Raises UserError if it cannot
    run.
    """
    agent_words = [sys.executable, *_AGENT, _as_json(settings)]
    script = f"cd {shlex.quote(str(session.PACKAGE.parent))} && exec {shlex.join(agent_words)}"
    try:
        agent = Connection(name, [*words, "sh", "-c", script], settings.silence_s)
    except Refused as error:
        raise _refusal(name, error) from None
    except NoAgent as error:
        entered = f"`{shlex.join(words)}` enters no host" if words else "no agent runs here"
        said = error.text.strip() or f"it ended with exit status {error.status}, and said nothing"
        raise UserError(
            f"{entered}: {said}",
            f"host {name}",
            "run again; if it ends so each time, `dmesg` tells whether memory ran out",
        ) from None
    _report_restored(agent, tell)
    return Host(agent, words, shared=True)


_AGENT = ("-ESs", "-m", "deathmatch.agent")


def _as_json(settings: Settings) -> str:
    return json.dumps(settings._asdict())


def _agent_folder(folder: str) -> str:
    return f"{folder}/agent-{session.digest()}"


def _entering(folder: str, python: str, settings: Settings) -> str:
    """Return the command that starts the agent there, for any kind of login shell."""
    script = (
        f"command -v {shlex.quote(python)} >/dev/null || exit {NO_PYTHON}; "
        f"cd {shlex.quote(_agent_folder(folder))} 2>/dev/null || exit {NOT_SET_UP}; "
        f"exec {shlex.join([python, *_AGENT, _as_json(settings)])}"
    )
    return f"exec sh -c {shlex.quote(script)}"


def _unpacking(folder: str) -> str:
    """Return the command that unpacks the agent there, atomically."""
    made = shlex.quote(_agent_folder(folder))
    script = (
        f'set -e; aside={made}.$$; mkdir -p "$aside"; tar -xf - -C "$aside"; '
        f'mv "$aside" {made} || test -d {made}'
    )
    return f"exec sh -c {shlex.quote(script)}"


def _set_up(alias: str, name: str, words: Sequence[str]) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in session.files():
            archive.add(session.PACKAGE.parent / path, str(path))
    done = subprocess.run(words, input=packed.getvalue(), capture_output=True)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise UserError(f"the agent cannot be copied there: {said}", f"host {name}",
                        f"name a folder that `ssh {alias}` may write to")  # fmt: skip


def _fault(alias: str, name: str, python: str, error: NoAgent) -> UserError:
    """Return the error that no agent answered, with a remedy."""
    where = f"host {name}"
    if error.status == NO_PYTHON:
        return UserError(f"there is no {python} there", where,
                         "install Python 3.11 or later there, or name the one it has")  # fmt: skip
    if error.status == _SSH_FAILED:
        said = next((line for line in reversed(error.lines) if line.strip()), "")
        for pattern, problem, remedy in _FAULTS:
            if re.search(pattern, error.text):
                return UserError(problem.format(said=said.strip()), where,
                                 remedy.format(alias=alias))  # fmt: skip
    return UserError(
        f"no agent answered (exit status {error.status}): {error.text.strip() or 'no output'}",
        where, f"see what `ssh {alias} true` says",
    )  # fmt: skip


def _report_restored(agent: Connection, tell: Callable[[str], None]) -> None:
    for ended in agent.hello["restored"]:
        for path in ended["restored"]:
            tell(f"host {agent.name}: restored {path}, which a killed run had changed")
        for problem in ended["failed"]:
            tell(f"host {agent.name}: not restored after a killed run: {problem}")


def _refusal(name: str, error: Refused) -> UserError:
    problem, remedy = _REFUSALS[error.reason]
    return UserError(problem.format(detail=error.detail), f"host {name}", remedy)
