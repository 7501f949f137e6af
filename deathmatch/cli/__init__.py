"""The command line: what there is to do, its help, its completion in shells.

Help and completion import none of the packages that do the work, so that they answer at once, and
on a machine where nothing is set up yet.
"""
