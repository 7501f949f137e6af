"""What a dry run reports of a dataset: points that are short."""

from collections.abc import Iterable

from deathmatch.plan.dataset import LEAST_POINT_S, least_overload_s
from deathmatch.plan.trial import Trial


def short_points(trials: Iterable[Trial]) -> list[str]:
    """Return a line with the shortest points of each experiment, and how long they should be.

    That is LEAST_POINT_S where a search offers the overload. No line where all are long enough.
    The strict check has rules of what was measured, DM-POINT-TIME and DM-OVERLOAD-TIME.
    """
    short: dict[str, tuple[float, float]] = {}
    for trial in trials:
        if trial.duration_s is None:
            continue
        search, least_s = trial.plan.search, least_overload_s(trial.experiment.load_as_written)
        if search and search.overload_shares:
            least_s = LEAST_POINT_S
        if trial.duration_s < least_s:
            name = trial.experiment.name
            shortest = (trial.duration_s, least_s)
            short[name] = min(shortest, short.get(name, shortest))
    if not short:
        return []
    points = ", ".join(
        f"{name} {seconds:g} of {least_s:g} s" for name, (seconds, least_s) in sorted(short.items())
    )
    return [f"short points: {points}; an overload looks answered until twice the time-out"]
