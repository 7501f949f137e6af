"""Adaptive rounds: which variants of a dataset are measured again, and when that is decided.

A round is one trial of each variant that is still of use. After as many rounds as LOOKS says,
`run.decision` looks at the claims and writes `data/<dataset>/rounds/<look>.json`. The trials of
a dataset follow from its own file and from these, so that a run that was killed goes on alike.
"""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

from pydantic import Field

from deathmatch.errors import UserError
from deathmatch.plan.looks import LOOKS
from deathmatch.plan.spec import Many, Spec

FOLDER = "rounds"


class Decision(Spec):
    """What was decided after some rounds."""

    look: int
    spent_s: Annotated[float, Field(ge=0)]
    """What the trials before took."""
    open: Many[str]
    """The claims that were open, those first that are cheapest to tell."""
    further: Many[str]
    """The variants that go on until the next look, as `name_of` has them; none ends the dataset."""
    why: str
    """Why it goes on, or no further, as a sentence."""


def name_of(experiment: str, server: str, variant: str) -> str:
    """Return how a decision names a variant: the folder of its trials below the dataset's."""
    return f"{experiment}/{server}/{variant}"


def file_of(dataset: str, look: int, root: Path = Path()) -> Path:
    """Return the file of a decision, whether or not it exists."""
    return root / "data" / dataset / FOLDER / f"{look}.json"


def after(look: int) -> int | None:
    """Return the look that follows; None after the last."""
    return next((at for at in LOOKS if at > look), None)


def decisions(dataset: str, before: int | None = None, root: Path = Path()) -> list[Decision]:
    """Return the decisions so far, in order, up to the first that ends the dataset.

    Only those of looks `before` one, if it is given. Raises UserError for a file that is not whole.
    """
    found = []
    for look in LOOKS:
        file = file_of(dataset, look, root)
        if look == before or not file.is_file():
            break
        found.append(read(file))
        if not found[-1].further:
            break
    return found


def read(file: Path) -> Decision:
    """Return one decision; UserError if its file is not whole."""
    try:
        return Decision.model_validate(json.loads(file.read_text()))
    except ValueError:
        raise UserError("it holds no decision", str(file), "delete it: it is made again") from None


def forget(dataset: str, since: int, root: Path = Path()) -> None:
    """Remove the decisions of that look and of later ones: they were made from other trials."""
    for look in LOOKS:
        if look >= since:
            file_of(dataset, look, root).unlink(missing_ok=True)


def write(dataset: str, decision: Decision, root: Path = Path()) -> None:
    """Write a decision, whole or not at all."""
    file = file_of(dataset, decision.look, root)
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.write_text(f"{decision.model_dump_json(indent=1)}\n")
    partial.rename(file)


def planned(decided: Collection[Decision], name: str) -> int:
    """Return how many trials a variant has, by what was decided so far."""
    count = LOOKS[0]
    for decision in decided:
        if name in decision.further and (following := after(decision.look)):
            count = following
    return count
