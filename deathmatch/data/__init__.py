"""From raw logs to Parquet tables with checked schemas; the check of a dataset; its archive."""
