"""Load generators, each a module with its command line and its report.

In: an address, the load settings of an experiment, a rate; a report. Out: the words of a command;
checked fields and histograms. Nothing here runs a program, and only files in a trial's own folder
are read or written.

`generator` has the interface, `registry` the list; `clients/<name>/client.toml` has what shell, Nix
and schemas need. A new one is a folder in clients/ and a module here.
"""
