"""The sittings of a dataset: which are measured, refused or left, and whether it is complete.

In: the dataset's file, and `data/NAME/sittings.json`, which has a row for each attempt at one. No
table is read; `data.refusal` has the numbers by which a sitting is refused.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.plan import files, paths
from deathmatch.plan.paths import ROOT

NAME = "sittings.json"
ASIDE = "refused"
"""The folder in a dataset's with the raw logs of refused sittings, `<sitting>-<attempt>.tar.xz`."""


@dataclass(frozen=True)
class Attempt:
    """A sitting as it was measured once.

    `began`, `ended`: of its trials, in UTC; `hours`: what they took together; `numbers`: what it
    was judged by, None where its tables have none; `refused`: why it does not count, else "".
    """

    sitting: str
    attempt: int
    began: str
    ended: str
    cpu: str
    kernel: str
    commit: str
    hours: float
    trials: int
    numbers: dict[str, float | None]
    refused: str

    def __str__(self) -> str:
        """Return what a table says of it."""
        if self.refused:
            return f"refused: {self.refused}"
        return f"measured {self.began[:10]}, {self.cpu}, Linux {self.kernel}, {self.hours:.1f} h"


def attempts(dataset: str, root: Path = ROOT) -> list[Attempt]:
    """Return the attempts at the dataset's sittings, in their order; none where nothing is kept.

    Raises UserError for a file that is damaged.
    """
    file = root / "data" / dataset / NAME
    try:
        return [Attempt(**row) for row in json.loads(file.read_text())]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError) as error:
        where = str(file.relative_to(root))
        raise UserError(f"it cannot be read: {error}", where, "take it from git again") from None


def add(dataset: str, attempt: Attempt, root: Path = ROOT) -> None:
    """Append an attempt to what is kept of the dataset."""
    rows = [*map(asdict, attempts(dataset, root)), asdict(attempt)]
    file = root / "data" / dataset / NAME
    aside = file.with_suffix(".part")
    aside.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    aside.replace(file)


def latest(dataset: str, root: Path = ROOT) -> dict[str, Attempt]:
    """Return the last attempt at each sitting that was measured, by its name."""
    return {attempt.sitting: attempt for attempt in attempts(dataset, root)}


def accepted(dataset: str, root: Path = ROOT) -> frozenset[str]:
    """Return the names of the sittings that are measured and not refused."""
    return frozenset(name for name, one in latest(dataset, root).items() if not one.refused)


def lacking(dataset: str, root: Path = ROOT) -> list[str]:
    """Return the sittings that a dataset still lacks to be published; none of one without any.

    After the hours of its stop rule, refused attempts included, it lacks none.
    """
    if not paths.path_of("dataset", dataset, root).is_file():
        return []
    spec = files.dataset(dataset, root)
    hours = sum(attempt.hours for attempt in attempts(dataset, root))
    if spec.stop_after_h is not None and hours >= spec.stop_after_h:
        return []
    there = accepted(dataset, root)
    return [sitting.name for sitting in spec.sittings if sitting.name not in there]


def check_complete(dataset: str) -> None:
    """Raise UserError if a dataset lacks sittings: nothing is decided on a part of it."""
    if missing := lacking(dataset):
        raise UserError(
            f"its claims and findings are decided once it is complete; it lacks {len(missing)} "
            f"sittings: {', '.join(missing)}",
            f"dataset {dataset!r}",
            f"measure them: snakemake --config dataset={dataset} sitting={missing[0]}",
        )
