"""Errors that are the user's to mend: one sentence each, never a traceback."""

import errno
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


def run_main(main: Callable[[], int | None]) -> None:
    """Call `main` and exit with its status; a `UserError` prints itself and exits 1.

    So does a full disk; an interrupt from the keyboard exits 130.
    """
    try:
        sys.exit(main())
    except UserError as error:
        sys.exit(f"deathmatch: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(f"deathmatch: {where}{error.strerror}\n  make room and run again")
