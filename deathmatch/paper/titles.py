"""Titles and texts, which anybody may write, as Markdown that shows them as they are."""

import re
from functools import cache

import polars as pl

from deathmatch.plan import files

# An underscore within a word is one.
SPECIAL = re.compile(r"([\\`*{}\[\]<>#@$^~|]|(?<!\w)_|_(?!\w))")


def escaped(text: str) -> str:
    """Return Markdown with each server's title in it escaped, where Markdown would read it."""
    pattern = _pattern()
    return pattern.sub(lambda title: plain(title[0]), text) if pattern else text


def without_html(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with every `<` of its text written so that it is shown, not obeyed.

    Servers' titles are shown as they are, too.
    """
    return frame.with_columns(
        pl.col(pl.String)
        .str.replace_all("<", "&lt;", literal=True)
        .map_elements(escaped, return_dtype=pl.String)
    )


def plain(text: str) -> str:
    """Return Markdown that shows a text as it is, in one line and without any markup."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))


@cache
def _pattern() -> re.Pattern | None:
    special = [server.title for server in files.servers() if SPECIAL.search(server.title)]
    longest_first = sorted(special, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if special else None
