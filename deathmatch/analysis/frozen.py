"""Frozen rules: claims, findings, margins and a dataset's plan, hashed before its first trial.

`text` is what data/published/frozen.toml must hold before the first trial of a dataset that says
`frozen_rules`; the ledger of such a dataset is refused once `rules_hash` is another.
"""

import datetime
import hashlib
import json

from pydantic import Field

from deathmatch.analysis import findings, judging, published, trial_tests
from deathmatch.errors import UserError
from deathmatch.plan import files, validation_errors
from deathmatch.plan.spec import Many, Spec

FILE = published.FOLDER / "frozen.toml"


class Frozen(Spec):
    """The file: the rules' hash, the day of its commit, how many tests, and what is not tested."""

    dataset: str
    rules: str = Field(pattern=r"^[0-9a-f]{64}$")
    committed: datetime.date
    tests: int = Field(ge=1)
    untested: Many[str]


def rules_hash(dataset: str) -> str:
    """Return the SHA-256 of all that decides a verdict on a dataset, except its trials.

    It covers the keys that the files set, wherever they are; not keys that only the program knows.
    """
    written = {"mode": "json", "exclude_unset": True}
    rules = {
        "margins": [trial_tests.ERROR, judging.MINIMUM_TRIALS, trial_tests.HOLM],
        "claims": [one.model_dump(**written) for one in published.claims()],
        "findings": [one.model_dump(**written) for one in findings.load()],
        "untested": not_tested(),
        # Whether trials may still be added decides nothing.
        "plan": files.dataset(dataset).model_dump(**written, exclude={"frozen"}),
    }
    return hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()


def not_tested() -> list[str]:
    """Return the names of untested.toml, sorted."""
    return sorted(one.id for one in published.untested())


def tests() -> int:
    """Return the number of tests: then and now of every claim, and the findings."""
    return sum(1 if claim.same else 2 for claim in published.claims()) + len(findings.load())


def text(dataset: str, day: datetime.date) -> str:
    """Return what frozen.toml must hold to freeze the rules of a dataset on that day."""
    names = ", ".join(f'"{name}"' for name in not_tested())
    return (
        f'dataset = "{dataset}"\nrules = "{rules_hash(dataset)}"\n'
        f"committed = {day.isoformat()}\ntests = {tests()}\nuntested = [{names}]\n"
    )


def read() -> Frozen:
    """Return what frozen.toml says; UserError with the key of a mistake."""
    raw = validation_errors.parse(FILE.read_bytes(), FILE.name)
    return validation_errors.validated(Frozen, raw, FILE.name)


def check(dataset: str) -> None:
    """Raise UserError if a dataset has frozen rules, and today's are others."""
    if not (files.exists("dataset", dataset) and files.dataset(dataset).frozen_rules):
        return
    if not FILE.is_file():
        raise UserError(
            f"the rules of the dataset {dataset} are not frozen",
            f"data/published/{FILE.name}",
            "write what deathmatch.analysis.frozen.text returns, and commit it before the first "
            "trial",
        )
    known = read()
    if (known.dataset, known.rules) != (dataset, rules_hash(dataset)):
        raise UserError(
            f"the rules of the dataset {dataset} are not those that were frozen on "
            f"{known.committed}",
            validation_errors.at(FILE.name, ["rules"]),
            "take back what was changed since then in claims.toml, findings.toml, untested.toml, "
            "in the margins or in the dataset's file",
        )
