"""The paper of a dataset of one's own: a few servers, which come before the study's findings."""

import re
from collections.abc import Sequence

from deathmatch.plan.paths import ROOT

NOTEBOOK = "15-your-servers"
"""Makes the table and the curves that such a paper begins with; no other dataset runs it."""
ALWAYS = ("00-method", NOTEBOOK)
"""The chapters that such a paper has whatever they draw: the front's text has values of them."""
MOST_SERVERS = 10
"""A dataset of more servers than this is about claims, as `quick` is, and no list of servers."""
FRONT = ROOT / "paper" / "source" / "own.md"


def front(study: str) -> str:
    """Return the text in place of the study's front: title, abstract, servers, then its sections.

    `study` is front.md, of which the title, the abstract and the first figure are left out.
    """
    first_section = re.search(r"^# ", study, re.MULTILINE)
    return f"{FRONT.read_text()}\n{study[first_section.start() :] if first_section else ''}"


def leaves_out(chapter: str, items: Sequence[dict], dataset: str) -> bool:
    """Return whether such a paper lacks a chapter, as the dataset fills none of its figures.

    `items` are what its notebook displayed. Figures of instruments and publications do not count.
    """
    lacks_figure = any(
        item["kind"] == "absent" and item["label"].startswith("fig-") for item in items
    )
    drawn = (source for item in items if item["kind"] == "figure" for source in item["source"])
    fills_figure = any(source.startswith(f"data/{dataset}/") for source in drawn)
    return chapter not in ALWAYS and lacks_figure and not fills_figure
