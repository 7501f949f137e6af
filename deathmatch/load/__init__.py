"""Load generators: what offers load, each a module with its command line and its report.

In: an address, the load settings of an experiment, a rate. Out: words of a command; of its report,
checked fields and histograms. Nothing here runs a program: files are read and written only in a
trial's own folder.

`generator` says what each implements, `registry` which there are; `clients/<name>/client.toml`
says what shell, Nix and schemas must know of it. A new one is a folder in clients/ and a module
here.
"""
