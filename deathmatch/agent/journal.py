"""A journal of the kernel settings that a session changes, by which they are restored.

A setting is a file under /proc/sys or /sys. Its former value is on the disk before it is changed,
so that a later process can restore it, however the session ended.
"""

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path

JOURNAL = "journal"
_ROOTS = (Path("/proc/sys"), Path("/sys"))
# The cookie of a network namespace, unique until the next boot (socket(7), since Linux 5.14).
_SO_NETNS_COOKIE = 71


def place() -> dict[str, str]:
    """Return the identity of this boot and network namespace, within which settings are valid."""
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
        """Restore all settings of before the session, the last change first.

        Return the paths: "restored" has those whose values had changed, "failed" those that the
        kernel refused, with the reason; the journal keeps only these.
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
                # An incomplete last line, as the session was killed before it changed the setting.
                break
            first_values.setdefault(entry["path"], entry["before"])
        return first_values


def _write(path: Path, value: str) -> None:
    # Unbuffered, so that this call raises the error; some files need a single write.
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, f"{value}\n".encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(descriptor)
