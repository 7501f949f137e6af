"""The paper of a dataset of one's own: a few servers, which come before the study's findings."""

import re

from deathmatch.plan.root import ROOT

NOTEBOOK = "15-your-servers"
"""Makes the table and the curves that such a paper begins with; no other dataset runs it."""
MOST_SERVERS = 10
"""A dataset of more servers than this is about claims, as `quick` is, and no list of servers."""
FRONT = ROOT / "paper" / "source" / "own.md"


def front(study: str) -> str:
    """Return the text in place of the study's front: title, abstract, servers, then its sections.

    `study` is front.md, of which the title, the abstract and the first figure are left out.
    """
    first_section = re.search(r"^# ", study, re.MULTILINE)
    return f"{FRONT.read_text()}\n{study[first_section.start() :] if first_section else ''}"
