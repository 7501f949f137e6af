"""What a controller asks of this copy of the project: `./shell deathmatch answer QUESTION`.

Question and answer are JSON; `copy.Copy` asks, and `site.Here` is who is asked.
"""

import argparse
import json

from deathmatch.errors import UserError
from deathmatch.hosts import sandbox
from deathmatch.hosts.site import Here
from deathmatch.plan import files


def main(given: argparse.Namespace) -> int:
    """Print {"answer"}, or {"mistake"} with what a UserError says, as the last line."""
    sandbox.die_with_owner()
    question = json.loads(given.question)
    try:
        told = {"answer": answer(**question)}
    except UserError as error:
        told = {"mistake": [error.what, error.where, error.remedy]}
    print(json.dumps(told))
    return 0


def answer(what: str, **arguments) -> object:
    """Return what the method `what` of this clone's site returns, ready for JSON."""
    if "server" in arguments:
        arguments["server"] = files.server(arguments["server"])
    found = getattr(Here(), what)(**arguments)
    if what == "command":
        return {
            "words": found.words, "environment": found.environment, "folder": str(found.folder)
        }  # fmt: skip
    return found
