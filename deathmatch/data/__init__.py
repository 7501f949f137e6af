"""From raw logs to tidy tables, with checked schemas; whether a dataset is sound; its archive.

In: the trials' folders. Out: Parquet tables.
"""
