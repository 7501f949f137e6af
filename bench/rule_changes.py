#!/usr/bin/env python3
"""List which rules of claims changed after a committed dataset began, by git's history.

    ./shell python bench/rule_changes.py

Writes `data/published/rule_changes.csv`: for each dataset with a record of its rules, each later
commit that changed the rule of a claim, or what stands for its servers if the record has that, with
its date, its subject, and the verdicts of the rule before and after it, both by today's code. A
rule that today's code cannot read has no verdict.
With `--record DATASET=COMMIT`, it first records a dataset's rules as they were in a commit.
"""

import argparse
import datetime as dt
import subprocess
import sys
import tomllib
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deathmatch.analysis import claims, releases, rule_changes  # noqa: E402
from deathmatch.data import rule_record  # noqa: E402
from deathmatch.data.rule_record import RuleRecord  # noqa: E402


def git(*words: str) -> str:
    """Return what git says."""
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def began(commit: str) -> str:
    """Return when a commit was made, in UTC."""
    seconds = int(git("log", "-1", "--format=%ct", commit))
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def text_at(commit: str) -> str:
    """Return the claims.toml of a commit."""
    return git("show", f"{commit}:{rule_record.CLAIMS.as_posix()}")


def verdicts(dataset: str, claim: dict | None) -> tuple[str, str]:
    """Return the verdicts then and now of a claim of an older claims.toml; "" of none."""
    if claim is None:
        return "", ""
    try:
        return tuple(
            claims.verdict(dataset, stand_in(dataset, claim)).verdict
            for stand_in in (releases.then, releases.now)
        )
    except (KeyError, ValueError, TypeError, AttributeError, pl.exceptions.PolarsError):
        return rule_changes.UNREADABLE, rule_changes.UNREADABLE


def claims_by_id(text: str, record: RuleRecord) -> dict[str, dict]:
    """Return the claims of a claims.toml by name; with its own stand-ins, if the record has any."""
    ledger = tomllib.loads(text)
    by_id = {claim["id"]: claim for claim in ledger["claim"]}
    if not record.stand_ins:
        return by_id
    return {
        name: {when: ledger[when].get(claim["source"], {}) for when in ("then", "now")} | claim
        for name, claim in by_id.items()
    }


def changes(dataset: str, record: RuleRecord) -> list[dict]:
    """Return a row for each change of a rule after the record, oldest first."""
    path = rule_record.CLAIMS.as_posix()
    later = git(
        "log", "--reverse", "--abbrev=7", "--format=%h", f"{record.commit}..HEAD", "--", path
    ).split()
    before, rows = text_at(record.commit), []
    for commit in later:
        after = text_at(commit)
        hashes = [rule_record.both_hashes(text, record) for text in (before, after)]
        by_id = [claims_by_id(text, record) for text in (before, after)]
        for name in dict.fromkeys([*hashes[0], *hashes[1]]):
            if hashes[0].get(name) == hashes[1].get(name):
                continue
            old, new = (verdicts(dataset, claims_of.get(name)) for claims_of in by_id)
            rows.append({
                "dataset": dataset, "claim": name, "date": began(commit)[:10], "commit": commit,
                "then_before": old[0], "then_after": new[0], "now_before": old[1],
                "now_after": new[1], "why": git("log", "-1", "--format=%s", commit).strip(),
            })  # fmt: skip
        before = after
    return rows


def main() -> int:
    """Record rules where that is asked for, and write the changes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="append", default=[], metavar="DATASET=COMMIT")
    for words in parser.parse_args().record:
        dataset, commit = words.split("=")
        rules = rule_record.hashes(text_at(commit))
        rule_record.write(dataset, RuleRecord(commit, began(commit), rules))
    rows = []
    for file in sorted(ROOT.glob(f"data/*/{rule_record.NAME}")):
        dataset = file.parent.name
        rows += changes(dataset, rule_record.read(dataset))
    pl.DataFrame(rows, schema=rule_changes.COLUMNS).write_csv(rule_changes.FILE)
    print(f"{len(rows)} changes of rules in {rule_changes.FILE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
