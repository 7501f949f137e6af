"""The load generators, by the name that an experiment gives: each a module with

`command(host, port, load, rate_rps, duration_s)`, `time_limit_s(load, duration_s)`,
`parse(report, duration_s)` with its SCHEMA (raises Truncated), `histogram(report)` with
HISTOGRAM_SCHEMA, `actual_rate_rps(fields, samples, spec)`, which is what it really offered, and
`limited(fields, offered_rate_rps, actual_rate_rps)`, whether a point shows its own limits.

A report is the text of its log, unless it has `read(log)`. One that writes more than a log has
`condense(log, keep_events)`, called when a rate was offered; one that a server's build makes has
BUILT_BY, that server's name.
"""

from deathmatch import config, httperf, roundtrip, wsload

CLIENTS = {"httperf": httperf, "roundtrip": roundtrip, "wsload": wsload}


def builders(experiment: str) -> set[str]:
    """Return the servers whose builds make the experiment's client too."""
    client = CLIENTS.get(config.load("experiment", experiment)["client"])
    return {client.BUILT_BY} if hasattr(client, "BUILT_BY") else set()
