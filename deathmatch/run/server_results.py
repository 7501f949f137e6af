"""What a run measured of each server, for its last lines: a number, or why there is none."""

from collections.abc import Container
from dataclasses import dataclass

from deathmatch.run.study import Study


@dataclass(frozen=True)
class Result:
    """One server in one experiment: its best `number` as text, or "" and `why` it has none.

    `by_harness`: some points show the limit of the load generator or of the testbed.
    """

    server: str
    experiment: str
    title: str
    number: str
    why: str
    by_harness: bool

    @property
    def line(self) -> str:
        """The result in one line."""
        what = f"{self.title} {self.number}" if self.number else f"no usable number, {self.why}"
        return f"result: {self.server} in {self.experiment}: {what}"


def results(study: Study, known: Container[str] = ()) -> list[Result]:
    """Return the results of servers chosen by name, and of those without any usable number.

    Without the servers that are `known` to have failed. Raises UserError for a damaged table.
    """
    # A dry run does not wait for polars.
    from deathmatch.analysis.outcomes import labelled, outcomes

    by_server: dict[str, list[Result]] = {}
    for experiment in study.measured:
        best = {}
        for outcome in outcomes(labelled(study.dataset, experiment)):
            best.setdefault(outcome.server, outcome)
        for server, outcome in best.items():
            title = outcome.quantity.title
            result = Result(
                server, experiment, title, outcome.number, outcome.why, outcome.by_harness
            )
            by_server.setdefault(server, []).append(result)
    named = study.choice.servers or ()
    return [
        result
        for server in study.served
        if server not in known
        for result in by_server.get(server, [])
        if server in named or not any(other.number for other in by_server[server])
    ]
