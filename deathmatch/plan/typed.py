"""Commands as a user types them, for advice."""

import os


def typed(command: str) -> str:
    """Return the command with what this one was called through, `./shell`, before it."""
    # Set by ./shell; a shell of `nix develop`, or one that ./shell has opened, needs no such word.
    through = os.environ.get("DEATHMATCH_SHELL", "")
    return f"{through} {command}".strip()
