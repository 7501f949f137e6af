"""What has a name in the project: `./shell deathmatch list [KIND]`."""

import argparse
import re
import tomllib
from pathlib import Path

from deathmatch.errors import UserError, printable
from deathmatch.plan.paths import PLACES, ROOT, names, path_of


def main(given: argparse.Namespace) -> int:
    """Print the names of every kind, or those of one kind with their titles."""
    if given.kind is None:
        for kind in PLACES:
            print(f"{kind}s: {', '.join(names(kind))}")
        return 0
    kind = given.kind.removesuffix("s")
    titles = {name: title(path_of(kind, name)) for name in names(kind)}
    width = max(map(len, titles), default=0)
    for name, text in titles.items():
        print(f"{name:{width}}  {text}".rstrip())
    return 0


def title(path: Path) -> str:
    """Return the title that a TOML file or a notebook gives itself; UserError if it is not TOML.

    Nothing else of the file is checked: one that is not finished has its place in a list too.
    """
    text = path.read_text()
    if path.suffix == ".md":
        # A comment in a cell has no attributes; those of an appendix say so.
        headings = re.findall(r"^# (.*?) *\{#([^}]*)\}$", text, re.MULTILINE)
        narrative = [heading for heading, attributes in headings if ".appendix" not in attributes]
        return next(iter([*narrative, *(heading for heading, _ in headings)]), "")
    try:
        return printable(str(tomllib.loads(text).get("title", "")))
    except tomllib.TOMLDecodeError as error:
        raise UserError(str(error), str(path.relative_to(ROOT)), "fix it and run again") from None
