"""Text of a dataset, which may be another's, as Markdown without HTML."""

import polars as pl

from deathmatch.paper import titles


def escaped(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with every `<` of its text written so that it is shown, not obeyed.

    Servers' titles are shown as they are, too.
    """
    return frame.with_columns(
        pl.col(pl.String)
        .str.replace_all("<", "&lt;", literal=True)
        .map_elements(titles.escaped, return_dtype=pl.String)
    )
