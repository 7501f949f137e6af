"""The command line: what there is to do, its help.

Help imports none of the packages that do the work, so that it answers at once, and
on a machine where nothing is set up yet.
"""
