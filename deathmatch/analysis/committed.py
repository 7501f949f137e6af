"""Records of an instrument, data/<kind>/<name>.json, that `deathmatch <kind> <name>` wrote."""

import json
from dataclasses import dataclass
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.plan.paths import ROOT

NAME = "reference"


@dataclass(frozen=True)
class Record:
    """One file: what the machine is, and every reading."""

    path: Path
    about: dict
    readings: list[dict]

    @property
    def source(self) -> str:
        """Its path from the project's folder, for a figure's `source`."""
        return str(self.path.relative_to(ROOT))


def path_of(kind: str, dataset: str) -> Path:
    """Return the dataset's own record of a kind, or the committed one where it has none."""
    folder = ROOT / "data" / kind
    own = folder / f"{dataset}.json"
    return own if own.is_file() else folder / f"{NAME}.json"


def load(kind: str, dataset: str) -> Record:
    """Return the record of `path_of`; UserError for a file that does not hold one."""
    path = path_of(kind, dataset)
    try:
        read = json.loads(path.read_text())
        return Record(path, read["about"], read["readings"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"no record of {kind} can be read ({type(error).__name__})",
            str(path.relative_to(ROOT)), f"write it: deathmatch {kind} {path.stem}",
        ) from None  # fmt: skip
