"""What makes a shell complete names: `deathmatch completion bash`, `zsh` or `fish` prints it."""

import argparse
from pathlib import Path

# Each asks `deathmatch complete` at every Tab; see `deathmatch.cli.complete`.
SCRIPTS = Path(__file__).with_name("scripts")


def main(given: argparse.Namespace) -> int:
    """Print the script of the shell that the command line names."""
    print((SCRIPTS / f"completion.{given.shell}").read_text(), end="")
    return 0
