"""Side instruments: `deathmatch KIND NAME` measures one cost and writes data/KIND/NAME.json.

In: options of the command line. Out: a record of the machine and one row for each reading.
"""
