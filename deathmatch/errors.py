"""Errors that are the user's to mend: one sentence each, never a traceback."""

import errno
import os
import sys
from collections.abc import Callable


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


class Truncated(ValueError):
    """A load generator's report that ends before its last line, or is not its own."""


ELSEWHERE = "clone or copy the checkout to where you may write, and run there"
REMEDIES = {
    errno.ENOSPC: "make room and run again",
    errno.EDQUOT: "make room and run again",
    errno.EROFS: ELSEWHERE,
    errno.EACCES: ELSEWHERE,
}
"""What to do about an error of the system that is the user's to mend."""


def run_main(main: Callable[[], int | None]) -> None:
    """Call `main` and exit with its status; a `UserError` prints itself and exits 1.

    So do a full disk and a folder in which nothing may be written; an interrupt from the keyboard
    exits 130.
    """
    try:
        sys.exit(main())
    except UserError as error:
        sys.exit(f"deathmatch: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        remedy = REMEDIES.get(error.errno)
        if remedy is None:
            raise
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(f"deathmatch: {where}{os.strerror(error.errno)}\n  {remedy}")
