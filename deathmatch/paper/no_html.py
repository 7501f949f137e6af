"""Text of a dataset, which may be another's, as Markdown without HTML."""

import polars as pl


def escaped(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with every `<` of its text written so that it is shown, not obeyed."""
    return frame.with_columns(pl.col(pl.String).str.replace_all("<", "&lt;", literal=True))
