"""The study's one look for charts, and the layers every question needs.

    theme.register()                                   # done by display.setup
    theme.lines(frame, "offered_rps", "reply_rps", "server", low="low_rps", high="high_rps",
                published=walkin)                      # curves, bands, end labels, hover, pick
    theme.dots(frame, "latency_us", "server", low="low_us", high="high_us")
    theme.title("latency_us")                          # "latency (µs)"

Every function takes a polars frame and returns an Altair chart; nothing is written or shown.
Column names end in their unit, and axis titles are made from them unless given.
"""

from deathmatch.paper.theme.axes import GREY, PALETTE, config, register, title
from deathmatch.paper.theme.curves import dots, lines, multiples, together
from deathmatch.paper.theme.stacks import stacks

__all__ = [
    "GREY",
    "PALETTE",
    "config",
    "dots",
    "lines",
    "multiples",
    "register",
    "stacks",
    "title",
    "together",
]
