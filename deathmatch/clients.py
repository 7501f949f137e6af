"""The load generators, by the name that an experiment gives: each a module with

`command(host, port, load, rate_rps, duration_s)`, `time_limit_s(load, duration_s)`,
`parse(report, duration_s)` with its SCHEMA (raises Truncated), `histogram(report)` with
HISTOGRAM_SCHEMA, `actual_rate_rps(fields, samples, spec)`, which is what it really offered, and
`limited(fields, offered_rate_rps, actual_rate_rps)`, whether a point shows its own limits.

A report is the text of its log, unless it has `read(log)`. One that writes more than a log has
`condense(log, keep_events)`, called when a rate was offered.
"""

from importlib import import_module
from types import ModuleType

from deathmatch import config

CLIENTS = ("httperf", "roundtrip", "wsload")
# Those that the build of a server makes too.
BUILT_BY = {"wsload": "ws-null"}


def load(name: str) -> ModuleType:
    """Return the client's module; only now, as polars loads slowly and a plan needs none."""
    return import_module(f"deathmatch.{name}")


def builders(experiment: str) -> set[str]:
    """Return the servers whose builds make the experiment's client too."""
    client = config.load("experiment", experiment)["client"]
    return {BUILT_BY[client]} if client in BUILT_BY else set()
