"""The rules of claims as they were when a dataset's first trial began: data/NAME/rules.json.

In: data/published/claims.toml. Out: hashes of each claim's rule and of what stands for its servers,
and the commit. A ledger compares them with the rules that decide it.
"""

import datetime
import hashlib
import json
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from deathmatch.plan.paths import ROOT

NAME = "rules.json"
CLAIMS = Path("data/published/claims.toml")
# What decides a claim: its rule, and what of the data it is decided on.
_DECIDES = ("experiment", "rule", "needs", "out_of_reach", "then", "now")
# Words for readers, which decide nothing.
_WORDS = ("text", "basis", "why")


@dataclass(frozen=True)
class RuleRecord:
    """The rules at a moment: by claim a hash, the commit that had them, and when that was (UTC).

    `stand_ins`: by claim a hash of what stands for its servers then and now; empty in records that
    were made before it was kept.
    """

    commit: str
    at: str
    rules: dict[str, str]
    stand_ins: dict[str, str] = field(default_factory=dict)

    def recorded(self, claim: str) -> tuple[str | None, str | None]:
        """Return what is recorded of a claim: of its rule, and of what stands for its servers."""
        return self.rules.get(claim), self.stand_ins.get(claim)


def hashes(text: str) -> dict[str, str]:
    """Return a hash of each claim's rule in the text of a claims.toml, by the claim's name.

    Of what decides the claim: its words for readers may change, and so may the code that reads it.
    """
    return {
        claim["id"]: _hash({key: _without_words(claim[key]) for key in _DECIDES if key in claim})
        for claim in tomllib.loads(text)["claim"]
    }


def stand_ins(text: str) -> dict[str, str]:
    """Return a hash of what stands for each claim's servers then and now, by the claim's name.

    Of the tables of a claims.toml's text by source, and of the servers that stay together.
    """
    ledger = tomllib.loads(text)
    return {claim["id"]: _hash(_stand_ins(ledger, claim)) for claim in ledger["claim"]}


def both_hashes(text: str, record: RuleRecord) -> dict[str, tuple[str | None, str | None]]:
    """Return both hashes of each claim in the text of a claims.toml, as `RuleRecord.recorded` does.

    The second is None if the record has none.
    """
    standing = stand_ins(text) if record.stand_ins else {}
    return {claim: (rule, standing.get(claim)) for claim, rule in hashes(text).items()}


def _stand_ins(ledger: dict, claim: dict) -> dict:
    named = set(_texts(claim["rule"]))
    chosen = {}
    # A claim's own `then` and `now` are in the hash of its rule.
    for when in {"then", "now"} - claim.keys():
        table = ledger.get(when, {}).get(claim["source"], {})
        chosen[when] = {server: columns for server, columns in table.items() if server in named}
    together = [sorted(named & set(servers)) for servers in ledger.get("together", {}).values()]
    return chosen | {"together": [servers for servers in together if len(servers) > 1]}


def _texts(node) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, list | dict):
        for part in node.values() if isinstance(node, dict) else node:
            yield from _texts(part)


def _hash(decides: dict) -> str:
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:16]


def _without_words(node):
    if isinstance(node, list):
        return [_without_words(part) for part in node]
    if not isinstance(node, dict):
        return node
    return {key: _without_words(part) for key, part in node.items() if key not in _WORDS}


def keep(dataset: str, commit: str | None, root: Path = ROOT) -> None:
    """Record the rules of this moment, unless a trial of the dataset was measured before.

    A run that only built, or ended before its first trial, leaves a record that the next replaces.
    """
    folder = root / "data" / dataset
    if any(next(folder.glob(measured), None) for measured in ("*/*/*/*/trial.json", "*/*.parquet")):
        return
    at = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = (root / CLAIMS).read_text()
    write(dataset, RuleRecord(commit or "unknown", at, hashes(text), stand_ins(text)), root)


def write(dataset: str, record: RuleRecord, root: Path = ROOT) -> None:
    """Write a dataset's record."""
    text = json.dumps(asdict(record), indent=1) + "\n"
    (root / "data" / dataset / NAME).write_text(text)


def read(dataset: str, root: Path = ROOT) -> RuleRecord | None:
    """Return a dataset's record; None of one that was begun before there were records."""
    file = root / "data" / dataset / NAME
    return RuleRecord(**json.loads(file.read_text())) if file.is_file() else None


def frozen(dataset: str) -> dict[str, bool] | None:
    """Return for each claim of today whether its rule is that of the dataset's first trial.

    So must be what stands for its servers, if the record has it. None of a dataset that has no
    record of its rules.
    """
    record = read(dataset)
    if record is None:
        return None
    today = both_hashes((ROOT / CLAIMS).read_text(), record)
    return {claim: rule == record.recorded(claim) for claim, rule in today.items()}


def word(known: dict[str, bool] | None, claim: str) -> str:
    """Return whether a claim's rule is that of the first trial, by `frozen`, for a cell."""
    if known is None:
        return "not recorded"
    return "as then" if known.get(claim) else "changed"
