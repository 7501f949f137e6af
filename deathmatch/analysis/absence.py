"""Why there is nothing to draw, or no row to show: what became of the points it is made from."""

from collections.abc import Iterable
from pathlib import Path

from deathmatch.analysis import views
from deathmatch.data import laws


def reason(source: Iterable[str]) -> str:
    """Return in words why the tables named hold nothing to show, a clause for each experiment.

    `source` are paths as `views.Experiment.source` returns them; others, and those of every
    experiment (`*`), say nothing. Empty where none is such a path.
    """
    parts = [Path(path).parts for path in source if "*" not in str(path)]
    named = {(part[1], part[2]): None for part in parts if len(part) == 4 and part[0] == "data"}
    return "; ".join(_of_experiment(views.Experiment(*key)) for key in named)


def _of_experiment(experiment: views.Experiment) -> str:
    """Return why an experiment has nothing to show, by the number of its points."""
    points, valid = experiment.points, len(experiment.valid_points)
    total, named = len(points), f"points of *{experiment.name}*"
    if not total:
        return f"no point of *{experiment.name}* was measured"
    if valid == total:
        return f"none of the {total} {named} is of a variant that it shows"
    limited, broken = points["client_limited"].sum(), (points["report"] == "truncated").sum()
    unlawful = total - len(laws.upheld(points))
    counts = {
        f"{limited} of {total} {named} were limited by the client": limited,
        f"at {broken} of {total} {named} the report of the load generator breaks off": broken,
        f"{unlawful} of {total} {named} break a law": unlawful,
    }
    text = " and ".join(text for text, count in counts.items() if count)
    return f"{text}, and the others are of variants that it does not show" if valid else text
