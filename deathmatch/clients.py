"""The load generators, by the name that an experiment gives: each a module with

`command(host, port, load, rate_rps, duration_s)`, `time_limit_s(load, duration_s)`,
`parse(report, duration_s)` with its SCHEMA (raises Truncated), `histogram(report)` with
HISTOGRAM_SCHEMA, `actual_rate_rps(fields, samples, spec)`, which is what it really offered, and
`limited(fields, offered_rate_rps, actual_rate_rps)`, whether a point shows its own limits.
"""

from deathmatch import httperf, roundtrip

CLIENTS = {"httperf": httperf, "roundtrip": roundtrip}
