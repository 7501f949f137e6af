"""Load generators: what offers load, each a module with its command line and its report.

In: an address, the load settings of an experiment, a rate. Out: words of a command; of its report,
checked fields and histograms. Pure functions: nothing here runs a program.
"""
