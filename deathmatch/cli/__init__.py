"""The command line and its help, which imports no library and none of the commands' modules."""
