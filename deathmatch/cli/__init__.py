"""The command line: what there is to do, its help, which imports none of what does the work."""
