"""Escape titles and texts, which anybody may write, so that Markdown shows them literally."""

import re
from functools import cache

import polars as pl

from deathmatch.plan import files

# Pandoc keeps an underscore within a word, and replaces quotes, "--" and "...".
SPECIAL = re.compile(r"""([\\`*{}\[\]<>#@$^~|&"']|(?<!\w)_|_(?!\w)|-(?=-)|\.(?=\.)|^[-+=:%])""")
# A number at the beginning of a list.
FIRST = re.compile(r"^(\d+)(?=[.)])")
# Columns with the output of programs, which is not Markdown.
SAID = ("version", "reason")


def escaped(text: str) -> str:
    """Return Markdown with each text in it that a server's file gives escaped, if Markdown has it.

    Those are the titles of servers and of their configurations, and the names of releases.
    """
    pattern = _pattern()
    return pattern.sub(lambda title: plain(title[0]), text) if pattern else text


def without_html(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with every `<` of its text escaped, so that no HTML is in it.

    Text from servers' files and from programs is shown literally, too.
    """
    said = [pl.col(name).map_elements(plain, pl.String) for name in SAID if name in frame.columns]
    others = pl.col(pl.String).exclude(SAID).map_elements(escaped, pl.String)
    shown = pl.col(pl.String).str.replace_all(r"\\?<", "&lt;")
    return frame.with_columns(*said, others).with_columns(shown)


def plain(text: str) -> str:
    """Return Markdown that shows a text as it is, in one line and without any markup."""
    return FIRST.sub(r"\1\\", SPECIAL.sub(r"\\\1", " ".join(text.split())))


@cache
def _pattern() -> re.Pattern | None:
    texts = set()
    for server in files.servers():
        texts |= {server.title, *map(server.called, server.configurations)}
        texts |= {server.release.name, server.release.nix or ""} if server.release else set()
    special = [text for text in texts if plain(text) != text]
    longest_first = sorted(special, key=lambda text: (-len(text), text))
    return re.compile("|".join(map(re.escape, longest_first))) if special else None
