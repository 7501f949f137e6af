"""Run a program at an instant: `launch.py AT_NS DESCRIPTOR WORDS...`.

AT_NS is of the monotonic clock; the program's lateness in ns is written to DESCRIPTOR. It is a
process of its own, started earlier, so that the session does not delay the program.
"""

import os
import sys
import time


def main(at_ns: int, descriptor: int, words: list[str]) -> None:
    """Wait for the instant, write the lateness, and execute the program."""
    while (early_ns := at_ns - time.monotonic_ns()) > 0:
        time.sleep(early_ns / 1e9)
    os.write(descriptor, str(-early_ns).encode())
    os.close(descriptor)
    try:
        os.execvp(words[0], words)
    except OSError as error:
        print(f"{words[0]}: {error.strerror}", file=sys.stderr)
        # As a shell does.
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
