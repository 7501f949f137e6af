"""List the servers, experiments, datasets and so on: `./shell deathmatch list [KIND]`."""

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
    """Return the title in a TOML file or a notebook; raise UserError if the TOML is wrong.

    Nothing else is checked: an unfinished file is listed too.
    """
    text = path.read_text()
    if path.suffix == ".md":
        # Headings have attributes, comments in cells have none; an appendix has `.appendix`.
        headings = re.findall(r"^# (.*?) *\{#([^}]*)\}$", text, re.MULTILINE)
        narrative = [heading for heading, attributes in headings if ".appendix" not in attributes]
        return next(iter([*narrative, *(heading for heading, _ in headings)]), "")
    try:
        return printable(str(tomllib.loads(text).get("title", "")))
    except tomllib.TOMLDecodeError as error:
        raise UserError(str(error), str(path.relative_to(ROOT)), "fix it and run again") from None
