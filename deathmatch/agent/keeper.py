"""The agent's outer process: the host's lock, the pid namespace, and settings restored afterwards.

It outlives all processes of the session, so that it can restore settings. If it is killed, the
kernel ends the session, and the next agent of this user in the same folder restores them.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from deathmatch.agent import namespaces, wire
from deathmatch.agent.journal import Journal, place

_RUN = "run-"
_PLACE = "place.json"
_HELD = "held"


class Settings(NamedTuple):
    """The controller's choices.

    The session's folder is made in `folder`, relative to the home. The agent ends after `silence_s`
    without a message. It waits for the host's lock up to `wait_s`, unless `lock` is false.
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
        # All its processes end with it; its settings are restored below.
        if not session:
            sys.exit(1)
        session[0].kill()

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, end)
    with contextlib.ExitStack() as held:
        if settings.lock:
            # A controller that lost its host waits for its former session, which may still run.
            lock = namespaces.lock(settings.wait_s)
            if lock is None:
                return _refuse("busy", "")
            held.enter_context(lock)
        entering = namespaces.words("--map-root-user")
        try:
            problem = namespaces.forbidden(entering)
        except FileNotFoundError as error:
            problem = f"{error.filename} is not installed"
        if problem:
            return _refuse("namespaces", problem)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            restored = list(_restore_left(folder))
            own = held.enter_context(_own(folder))
        except OSError as error:
            return _refuse("folder", str(error))
        begin = {"folder": str(own), "silence_s": settings.silence_s, "restored": restored}
        own_program = [sys.executable, "-ESs", "-m", __package__, "--session", json.dumps(begin)]
        session.append(subprocess.Popen([*entering, *own_program]))
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


@contextlib.contextmanager
def _own(folder: Path) -> Iterator[Path]:
    """Make the session's folder, locked against other keepers until the block ends."""
    own = folder / f"{_RUN}{os.getpid()}-{os.urandom(4).hex()}"
    own.mkdir(mode=0o700)
    with (own / _HELD).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        (own / _PLACE).write_text(json.dumps({**place(), "keeper": os.getpid()}))
        yield own


def _restore_left(folder: Path) -> Iterator[dict[str, Any]]:
    """Restore the settings of sessions whose keeper was killed, and remove their folders.

    Yields the result of `Journal.restore` for each session that had changed settings. A folder of
    another network namespace is kept for the next keeper there.
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
            # The keeper was killed before any setting was changed.
            if time.time() - left.stat().st_mtime > wire.SILENCE_S:
                shutil.rmtree(left, ignore_errors=True)
