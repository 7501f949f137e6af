"""`python -m deathmatch.agent [SETTINGS]`; the settings are one JSON object: see `keeper.Settings`.

The keeper starts the session with `--session` before them.
"""

import sys

OLDEST = (3, 11)

if sys.version_info < OLDEST:
    # This comes before any import that such a Python cannot read.
    sys.stdout.write('\n{"refused": "python", "detail": "%d.%d"}\n' % sys.version_info[:2])  # noqa: UP031
    sys.exit(1)

if sys.argv[1:2] == ["--session"]:
    from deathmatch.agent import session

    session.run(sys.argv[2])
elif sys.argv[1:2] in (["-h"], ["--help"]):
    print(__doc__)
else:
    # Each process imports only what it needs: both stay in memory during measurements.
    from deathmatch.agent import keeper

    sys.exit(keeper.run(*sys.argv[1:2]))
