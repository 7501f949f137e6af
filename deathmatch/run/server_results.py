"""What a run measured of each server, for its last lines: a number, or why there is none."""

from collections.abc import Container
from typing import TYPE_CHECKING

from deathmatch.run.study import Study

# A dry run does not wait for polars.
if TYPE_CHECKING:
    from deathmatch.analysis.outcomes import Outcome


def line(result: "Outcome") -> str:
    """Return a result in one line."""
    title, number = result.quantity.title, result.number
    what = f"{title} {number}" if number else f"no usable number, {result.why}"
    return f"result: {result.server} in {result.experiment}: {what}"


def results(study: Study, known: Container[str] = ()) -> list["Outcome"]:
    """Return the results of servers chosen by name, and of those without any usable number.

    Without the servers that are `known` to have failed. Raises UserError for a damaged table.
    """
    from deathmatch.analysis.outcomes import labelled, outcomes

    by_server: dict[str, list[Outcome]] = {}
    for experiment in study.measured:
        best = {}
        for outcome in outcomes(labelled(study.dataset, experiment)):
            best.setdefault(outcome.server, outcome)
        for server, outcome in best.items():
            by_server.setdefault(server, []).append(outcome)
    named = study.choice.servers or ()
    return [
        result
        for server in study.served
        if server not in known
        for result in by_server.get(server, [])
        if server in named or not any(other.number for other in by_server[server])
    ]
