"""The sittings of a dataset: which are measured, refused or left, and whether it is complete.

`data/NAME/sittings.json` has a row for each attempt at one. No table is read; `data.refusal` has
the numbers by which a sitting is refused.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.plan import files
from deathmatch.plan.paths import ROOT

NAME = "sittings.json"
ASIDE = "refused"
"""The folder with the raw logs of a dataset's refused sittings, `<sitting>-<attempt>.tar.xz`."""


@dataclass(frozen=True)
class Attempt:
    """One measurement of a sitting.

    `began`, `ended`: of its trials, in UTC; `hours`: the sum of their times; `numbers`: those that
    it was judged by, None if unknown; `refused`: why it does not count, or "".
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
        """Return its description in a table."""
        if self.refused:
            return f"refused: {self.refused}"
        return f"measured {self.began[:10]}, {self.cpu}, Linux {self.kernel}, {self.hours:.1f} h"


def attempts(dataset: str, root: Path = ROOT) -> list[Attempt]:
    """Return the recorded attempts at the dataset's sittings, in their order.

    Raises UserError if their file is damaged.
    """
    file = root / "data" / dataset / NAME
    try:
        return [Attempt(**row) for row in json.loads(file.read_text())]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError) as error:
        where = str(file.relative_to(root))
        raise UserError(f"it cannot be read: {error}", where, "restore it from git") from None


def add(dataset: str, attempt: Attempt, root: Path = ROOT) -> None:
    """Add an attempt to the records of the dataset."""
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
    """Return the sittings that a dataset still lacks to be complete; none if it has no sittings.

    After the hours of its stop rule, refused attempts included, it lacks none.
    """
    if not files.exists("dataset", dataset, root):
        return []
    spec = files.dataset(dataset, root)
    hours = sum(attempt.hours for attempt in attempts(dataset, root))
    if spec.stop_after_h is not None and hours >= spec.stop_after_h:
        return []
    there = accepted(dataset, root)
    return [sitting.name for sitting in spec.sittings if sitting.name not in there]


def check_complete(dataset: str) -> None:
    """Raise UserError if a dataset lacks sittings, since a part of it decides nothing."""
    if missing := lacking(dataset):
        raise UserError(
            f"its claims and findings are decided once it is complete; it lacks {len(missing)} "
            f"sittings: {', '.join(missing)}",
            f"dataset {dataset!r}",
            f"measure them: snakemake --config dataset={dataset} sitting={missing[0]}",
        )
