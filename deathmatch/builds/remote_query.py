"""What a controller asks of this copy of the project: `./shell deathmatch answer`.

Questions and answers are JSON, a line each; `copy.Copy` asks, and `clone.Clone` is who is asked.
"""

import argparse
import json
import sys

from deathmatch.builds.clone import Clone
from deathmatch.errors import UserError
from deathmatch.hosts import sandbox
from deathmatch.plan import files


def main(given: argparse.Namespace) -> int:
    """Answer the question named on the command line, or each line of the input."""
    sandbox.die_with_owner()
    for question in [given.question] if given.question else sys.stdin:
        print(json.dumps(told(question)), flush=True)
    return 0


def told(question: str) -> dict:
    """Return {"answer"}, or {"mistake"} with what a UserError says."""
    try:
        return {"answer": answer(**json.loads(question))}
    except UserError as error:
        return {"mistake": [error.what, error.where, error.remedy]}


def answer(what: str, **arguments) -> object:
    """Return what the method `what` of this clone returns, ready for JSON."""
    if "server" in arguments:
        arguments["server"] = files.server(arguments["server"])
    found = getattr(Clone(), what)(**arguments)
    if what == "command":
        return {
            "words": found.words, "environment": found.environment, "folder": str(found.folder)
        }  # fmt: skip
    return found
