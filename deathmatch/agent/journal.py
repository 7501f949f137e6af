"""Settings of the kernel that a session changes, and what they were, so that they are restored.

A setting is a file under /proc/sys or /sys. What it was is written down, and on the disk, before it
is changed: whoever reads the journal later can restore it, whatever ended the session.
"""

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path

JOURNAL = "journal"
_ROOTS = (Path("/proc/sys"), Path("/sys"))
# A namespace's number that no other has before the next boot (socket(7), since Linux 5.14).
_SO_NETNS_COOKIE = 71


def place() -> dict[str, str]:
    """Return what identifies this boot and this network namespace: settings hold in both only."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            cookie = any_socket.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8).hex()
        except OSError:
            cookie = ""
    return {
        "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "network": f"{os.readlink('/proc/self/ns/net')} {cookie}",
    }


class Journal:
    """The journal of one session, a file in its folder."""

    def __init__(self, folder: Path):
        self._file = folder / JOURNAL

    def set(self, values: Mapping[str, str]) -> None:
        """Write each {path: value}.

        A path that does not exist is left out: the kernel has no such setting. ValueError for one
        that is none; OSError, which names the file, if the kernel refuses, those before it set.
        """
        for name, value in values.items():
            path = Path(name)
            if ".." in path.parts or not any(path.is_relative_to(root) for root in _ROOTS):
                raise ValueError(f"{name} is not a setting of the kernel")
            if not path.exists():
                continue
            self._note({"path": name, "before": path.read_text().strip()})
            _write(path, value)

    def _note(self, entry: dict[str, str]) -> None:
        with self._file.open("a") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def restore(self) -> dict[str, list[str]]:
        """Set everything to what it was before the session, last change first.

        Return the paths, under "restored" those that were no more what they had been, under
        "failed" those refused, with the reason: the journal keeps these, and forgets the others.
        """
        done: dict[str, list[str]] = {"restored": [], "failed": []}
        refused = {}
        for name, before in reversed(self._first().items()):
            try:
                if Path(name).read_text().strip() != before:
                    _write(Path(name), before)
                    done["restored"].append(name)
            except OSError as error:
                done["failed"].append(f"{name} = {before}: {error.strerror}")
                refused[name] = before
        self._file.unlink(missing_ok=True)
        for name, before in reversed(refused.items()):
            self._note({"path": name, "before": before})
        return done

    def _first(self) -> dict[str, str]:
        """Return {path: what it was before its first change}, in the order of these."""
        first_values: dict[str, str] = {}
        for text in self._file.read_text().splitlines() if self._file.exists() else []:
            try:
                entry = json.loads(text)
            except ValueError:
                # The line that was being written as the session was killed: nothing was set yet.
                break
            first_values.setdefault(entry["path"], entry["before"])
        return first_values


def _write(path: Path, value: str) -> None:
    # Unbuffered, so that the error is this call's; some files want all of it in one write.
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, f"{value}\n".encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(descriptor)
