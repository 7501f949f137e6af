"""`python -m deathmatch`: see `deathmatch.cli.main`."""

from deathmatch.cli.main import run

run()
