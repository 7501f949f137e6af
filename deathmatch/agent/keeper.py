"""The agent's outer process: the host's lock, the pid namespace, and settings restored afterwards.

It outlives everything that the session runs, so that it can restore. If it is killed itself, the
kernel ends the session, and the next agent that this user starts in the same folder restores.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from deathmatch.agent import wire
from deathmatch.agent.journal import Journal, place

# A trial's sandbox takes the same lock. It has no file and cannot outlive its holder, and each
# network namespace has its own.
LOCK = "\0deathmatch-testbed"
_RUN = "run-"
_PLACE = "place.json"
_HELD = "held"
_RETRY_S = 0.1


class Settings(NamedTuple):
    """What the controller may choose.

    `folder`, below which the session's own is made, relative to the home; how long to stay without
    a sign of the controller; how long to wait for the host's lock; whether to take that at all.
    """

    folder: str = ".local/share/deathmatch"
    silence_s: float = wire.SILENCE_S
    wait_s: float = 2 * wire.SILENCE_S
    lock: bool = True


def run(text: str = "{}") -> int:
    """Keep one session from its beginning to its end; return the exit status."""
    settings = Settings(**json.loads(text))
    folder = Path.home() / settings.folder
    session: list[subprocess.Popen] = []

    def end(*_: object) -> None:
        # With it ends all that it started; what it changed is restored below.
        if not session:
            sys.exit(1)
        session[0].kill()

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, end)
    with contextlib.ExitStack() as held:
        if settings.lock:
            lock = _lock(settings.wait_s)
            if lock is None:
                return _refuse("busy", "")
            held.enter_context(lock)
        if problem := _forbidden():
            return _refuse("namespaces", problem)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            restored = list(_restore_left(folder))
            own = held.enter_context(_own(folder))
        except OSError as error:
            return _refuse("folder", str(error))
        begin = {"folder": str(own), "silence_s": settings.silence_s, "restored": restored}
        own_program = [sys.executable, "-ESs", "-m", __package__, "--session", json.dumps(begin)]
        session.append(subprocess.Popen([*_namespaces(), *own_program]))
        status = session[0].wait()
        done = Journal(own).restore()
        if not done["failed"]:
            shutil.rmtree(own, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.write(1, wire.line({"event": "over", "status": status, **done}))
    return 0 if status == 0 else 1


def _refuse(reason: str, detail: str) -> int:
    os.write(1, b"\n" + wire.line({"refused": reason, "detail": detail}))
    return 1


def _lock(wait_s: float) -> socket.socket | None:
    """Return the lock, None if another has it all the time.

    A controller that lost its host waits for the session that has yet to notice.
    """
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    deadline = time.monotonic() + wait_s
    while True:
        try:
            lock.bind(LOCK)
            return lock
        except OSError:
            if time.monotonic() > deadline:
                lock.close()
                return None
            time.sleep(_RETRY_S)


def _namespaces() -> list[str]:
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    unshare = ["unshare", *user, "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return ["setpriv", "--pdeathsig", "KILL", "--", *unshare, "--"]


def _forbidden() -> str:
    """Return why no namespaces can be made here, empty if they can; costs a process."""
    try:
        probe = subprocess.run(
            [*_namespaces(), "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    except FileNotFoundError as error:
        return f"{error.filename} is not installed"
    return "" if probe.returncode == 0 else probe.stderr.strip() or "unshare failed"


@contextlib.contextmanager
def _own(folder: Path) -> Iterator[Path]:
    """Make the session's folder; no other keeper removes it until the block ends."""
    own = folder / f"{_RUN}{os.getpid()}-{os.urandom(4).hex()}"
    own.mkdir(mode=0o700)
    with (own / _HELD).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        (own / _PLACE).write_text(json.dumps({**place(), "keeper": os.getpid()}))
        yield own


def _restore_left(folder: Path) -> Iterator[dict[str, Any]]:
    """Restore what sessions changed whose keeper was killed, and remove their folders.

    Yields what `Journal.restore` returns, for each session that had changed something. A folder of
    another network namespace stays, for the next keeper there.
    """
    here = place()
    for left in sorted(folder.glob(f"{_RUN}*")):
        try:
            with (left / _HELD).open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                then = json.loads((left / _PLACE).read_text())
                if then["boot"] == here["boot"]:
                    if then["network"] != here["network"]:
                        continue
                    done = Journal(left).restore()
                    if done["restored"] or done["failed"]:
                        yield done
                shutil.rmtree(left, ignore_errors=True)
        except BlockingIOError:
            continue
        except (OSError, ValueError, KeyError):
            # Killed before it was whole, hence before anything was changed.
            if time.time() - left.stat().st_mtime > wire.SILENCE_S:
                shutil.rmtree(left, ignore_errors=True)
