"""Halve the reply rates of a table of points: `halve-replies.py data/…/points.parquet`."""

import sys

import polars as pl

RATE = "reply_rate_offered_window_rps"
path = sys.argv[1]
pl.read_parquet(path).with_columns(pl.col(RATE) / 2).write_parquet(path)
