"""Run a program at an instant: `launch.py AT_NS DESCRIPTOR WORDS...`.

AT_NS is of the monotonic clock; how late the program began, in ns, is written to DESCRIPTOR. A
process of its own, so that nothing of the session delays it, and started as itself long before.
"""

import os
import sys
import time


def main(at_ns: int, descriptor: int, words: list[str]) -> None:
    """Wait for the instant, say how late it is, and become the program."""
    while (early_ns := at_ns - time.monotonic_ns()) > 0:
        time.sleep(early_ns / 1e9)
    os.write(descriptor, str(-early_ns).encode())
    os.close(descriptor)
    try:
        os.execvp(words[0], words)
    except OSError as error:
        print(f"{words[0]}: {error.strerror}", file=sys.stderr)
        # As a shell ends.
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
