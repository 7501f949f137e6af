"""`python -m deathmatch`: see `deathmatch.cli.main`."""

import signal

# While modules load, an interrupt ends this process at once: pydantic, which makes its validators
# then, prints the interrupt, goes on, and takes right files for wrong.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from deathmatch.cli.main import run

run()
