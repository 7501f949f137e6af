"""`python -m deathmatch`: see `deathmatch.cli`."""

from deathmatch.cli import run

run()
