"""What a controller asks of this copy of the project: `./shell deathmatch answer QUESTION`.

Question and answer are JSON; `copy.Copy` asks, and `clone.Clone` has the answers.
"""

import argparse
import json

from deathmatch.builds.clone import Clone
from deathmatch.errors import UserError
from deathmatch.hosts import sandbox
from deathmatch.plan import files


def main(given: argparse.Namespace) -> int:
    """Print the answer to the question: {"answer"}, or {"mistake"} with a UserError's parts."""
    sandbox.die_with_owner()
    try:
        answered = {"answer": answer(**json.loads(given.question))}
    except UserError as error:
        answered = {"mistake": [error.what, error.where, error.remedy]}
    print(json.dumps(answered, default=str))
    return 0


def answer(what: str, **arguments) -> object:
    """Return what the method `what` of this clone returns; a command as a dict of its fields."""
    if "server" in arguments:
        arguments["server"] = files.server(arguments["server"])
    value = getattr(Clone(), what)(**arguments)
    return vars(value) if what == "command" else value
