"""Does the load generator itself take the server's answers for valid, before anything is timed?

`conformance` reads HTTP and WebSocket with libraries of its own, which accept what a load generator
may not: an interim answer before the final one, a header's other spelling, a body whose length
changes. So the trial's load generator asks a few requests first.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from deathmatch.hosts.process import tail
from deathmatch.load.generator import Fields, LoadGenerator
from deathmatch.measure import client
from deathmatch.measure.conformance import Check
from deathmatch.measure.context import Context
from deathmatch.plan.record import loads


def check(context: Context) -> Check:
    """Offer some requests by the trial's load generator; return what it found wrong.

    Lost or late answers alone are no fault: the load is what provokes them. Takes about a second.
    Raises UserError if the load generator itself failed while the server ran.
    """
    name = f"{context.spec['client']} takes its answers"
    rate_rps, duration_s = context.generator.few(context.spec["load"])
    with tempfile.TemporaryDirectory(dir=context.out) as folder:
        log = Path(folder, "few.txt")
        offered = client.offer(context, rate_rps, duration_s, log)
        for load in loads(offered):
            context.generator.compact(log.with_name(load["log"]), False)
        fields = client.fields(context, offered, duration_s, log.parent)
        first = log.with_name(loads(offered)[0]["log"])
        whole = fields is not None or context.generator.refuses
        begun = fields is None or fields[context.generator.attempts]
        if not (whole and begun) and context.server_pids():
            what = "began no connection" if whole else "left no whole report"
            state = offered["client_state"]
            raise client.failure(context, f"{what} of its first requests: {state}", first)
        said = tail(first)
    return Check(name, problem(context.generator, fields, said))


def problem(generator: LoadGenerator, fields: Fields | None, said: str = "") -> str:
    """Return how many answers a report calls invalid, by class; empty if it has good ones alone.

    Without the fields of a whole report, return what the client `said` instead.
    """
    if fields is None:
        return f"it left no whole report: {said.strip()}"
    invalid = generator.invalid(fields)
    if invalid:
        counts = ", ".join(f"{name} {count}" for name, count in invalid.items())
        return f"invalid answers: {counts}; good ones: {generator.good(fields)}"
    return "" if generator.good(fields) else f"no good answer: {_failures(fields)}"


def _failures(fields: Mapping[str, object]) -> str:
    """Return the counts of failures that a report has."""
    begins = ("errors_", "outcome_", "messages_lost")
    counts = [f"{name} {count}" for name, count in fields.items()
              if name.startswith(begins) and count]  # fmt: skip
    return ", ".join(counts) or "its report has no failure"
