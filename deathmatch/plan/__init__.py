"""The plan of measurements: experiments, servers, datasets and testbeds as checked specs.

In: the TOML files of the tree. Out: the matrix of trials, each with all that it needs to run.
"""
