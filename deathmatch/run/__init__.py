"""What one call of Snakemake is about: its study, its progress, what failed.

In: Snakemake's configuration. Out: the lists of files and the messages that the workflow needs.
"""
