"""The rules of claims as they were when a dataset's first trial began: data/NAME/rules.json.

In: data/published/claims.toml. Out: a hash of each claim's rule, and the commit. A ledger compares
them with the rules that decide it.
"""

import datetime
import hashlib
import json
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

from deathmatch.plan.root import ROOT

NAME = "rules.json"
CLAIMS = Path("data/published/claims.toml")
# What decides a claim: its rule, and what of the data it is decided on.
_DECIDES = ("experiment", "rule", "needs", "as_source", "then", "now")
# Words for readers, which decide nothing.
_WORDS = ("text", "basis", "why")


@dataclass(frozen=True)
class RuleRecord:
    """The rules at a moment: by claim a hash, the commit that had them, and when that was (UTC)."""

    commit: str
    at: str
    rules: dict[str, str]


def hashes(text: str) -> dict[str, str]:
    """Return a hash of each claim's rule in the text of a claims.toml, by the claim's name.

    Of what decides the claim: its words for readers may change, and so may the code that reads it.
    """
    return {
        claim["id"]: hashlib.sha256(_decisive(claim).encode()).hexdigest()[:16]
        for claim in tomllib.loads(text)["claim"]
    }


def _decisive(claim: dict) -> str:
    chosen = {key: _without_words(claim[key]) for key in _DECIDES if key in claim}
    return json.dumps(chosen, sort_keys=True)


def _without_words(node):
    if isinstance(node, list):
        return [_without_words(part) for part in node]
    if not isinstance(node, dict):
        return node
    return {key: _without_words(part) for key, part in node.items() if key not in _WORDS}


def keep(dataset: str, commit: str | None, root: Path = ROOT) -> None:
    """Record the rules of this moment, once: where no trial of the dataset was measured before."""
    folder = root / "data" / dataset
    if (folder / NAME).exists() or next(folder.glob("*/*/*/*/trial.json"), None):
        return
    at = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    rules = hashes((root / CLAIMS).read_text())
    write(dataset, RuleRecord(commit or "unknown", at, rules), root)


def write(dataset: str, record: RuleRecord, root: Path = ROOT) -> None:
    """Write a dataset's record."""
    text = json.dumps(asdict(record), indent=1) + "\n"
    (root / "data" / dataset / NAME).write_text(text)


def read(dataset: str, root: Path = ROOT) -> RuleRecord | None:
    """Return a dataset's record; None of one that was begun before there were records."""
    file = root / "data" / dataset / NAME
    return RuleRecord(**json.loads(file.read_text())) if file.is_file() else None
