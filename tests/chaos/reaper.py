"""Run a command and end only after everything that it started: reaper.py STATUS_FILE COMMAND...

What loses its parent gets this one instead (prctl(2), PR_SET_CHILD_SUBREAPER), whatever session or
pid namespace it is in, so that a process that a killed run left is a descendant of this one. The
command's own exit status is written to the file as soon as it has ended, -N after signal N.
"""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("this kernel gives orphans to no subreaper")
    status, *words = sys.argv[1:]
    # A group of its own, as a terminal gives to a command.
    command = subprocess.Popen(words, start_new_session=True)
    while True:
        try:
            pid, ended = os.waitpid(-1, 0)
        except ChildProcessError:
            return
        if pid == command.pid:
            part = Path(f"{status}.part")
            part.write_text(str(os.waitstatus_to_exitcode(ended)))
            part.rename(status)


main()
