"""Errors that the user can fix: one sentence each, never a traceback."""

import difflib
import errno
import os
import re
import sys
from collections.abc import Callable, Iterable

# Control characters but tab and new line; separators of lines; what turns the direction of text.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return a text of another's with U+FFFD for each control character, which a terminal obeys."""
    return CONTROL.sub("\ufffd", text)


class UserError(Exception):
    """What is wrong, where, and what to do about it.

    `where` names a file, key and line as far as they are known; `remedy` is an imperative.
    """

    def __init__(self, what: str, where: str = "", remedy: str = ""):
        super().__init__(what)
        self.what, self.where, self.remedy = what, where, remedy

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        remedy = f"\n  {self.remedy}" if self.remedy else ""
        return f"{where}{self.what}{remedy}"


def close_names(name: str, known: Iterable[str]) -> str:
    """Return "did you mean 'yaws', 'yucan'?", up to three known names; empty if none is close."""
    close = difflib.get_close_matches(name, list(known))
    return f"did you mean {', '.join(map(repr, close))}?" if close else ""


def suggestions(name: str, known: Iterable[str]) -> str:
    """Return `close_names`, or "known: " and all of them where none is close."""
    names = list(known)
    return close_names(name, names) or f"known: {', '.join(names)}"


def as_typed(command: str) -> str:
    """Return the command with what this one was called through, `./shell`, before it."""
    # Set by ./shell; a shell of `nix develop`, or one that ./shell has opened, needs no such word.
    through = os.environ.get("DEATHMATCH_SHELL", "")
    return f"{through} {command}".strip()


class Truncated(ValueError):
    """A load generator's report that ends before its last line, or is not its own."""


ELSEWHERE = "clone or copy the checkout to where you may write, and run there"
REMEDIES = {
    errno.ENOSPC: "make room and run again",
    errno.EDQUOT: "make room and run again",
    errno.EROFS: ELSEWHERE,
    errno.EACCES: ELSEWHERE,
}
"""What to do about an error of the system that the user can fix."""


def run_main(main: Callable[[], int | None]) -> None:
    """Call `main` and exit with its status, as `status_of` has it."""
    sys.exit(status_of(main))


def status_of(main: Callable[[], int | None]) -> int:
    """Call `main` and return its exit status; a `UserError` is printed, and is 1.

    So are a full disk and a folder in which nothing may be written; an interrupt from the keyboard
    is 130.
    """
    try:
        return main() or 0
    except SystemExit as end:
        if isinstance(end.code, str):
            return _failed(end.code)
        return end.code or 0
    except UserError as error:
        return _failed(f"deathmatch: {error}")
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        remedy = REMEDIES.get(error.errno)
        if remedy is None:
            raise
        where = f"{error.filename}: " if error.filename else ""
        return _failed(f"deathmatch: {where}{os.strerror(error.errno)}\n  {remedy}")


def _failed(message: str) -> int:
    print(message, file=sys.stderr)
    return 1
