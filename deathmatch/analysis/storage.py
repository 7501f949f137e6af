"""How many bytes a stored message takes: the experiment storage.

In: points of the experiment. Out: bytes per message of each trial, by both accounts.
"""

import polars as pl

BODY_BYTES = 100


def bytes_per_message(points: pl.DataFrame) -> pl.DataFrame:
    """Return a row a trial with messages of BODY_BYTES: what full has more than empty, for each.

    `runtime_bytes` is by the runtime's own account, `rss_bytes` by the resident set.
    """
    accounts = ["runtime_bytes", "rss_bytes"]
    key = ["label", "configuration", "server", "n"]
    mine = points.filter(pl.col("body_bytes") == BODY_BYTES)
    empty = mine.filter(pl.col("messages") == 0).select(*key, *accounts)
    full = mine.filter(pl.col("messages") == pl.col("messages").max())
    return full.join(empty, on=key, suffix="_empty").with_columns(
        (pl.col(name) - pl.col(f"{name}_empty")) / pl.col("messages") for name in accounts
    )
