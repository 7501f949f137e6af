"""Tell of servers that could not be measured: `python -m deathmatch.complete DATASET`.

Their rows are in every table with the reason; this is for whoever can mend them.
"""

import argparse
import json
import sys

from deathmatch import matrix
from deathmatch.errors import run_main

UNMEASURED = ("not built", "did not start", "answers wrongly")


def main() -> int:
    """Print each server and variant that could not be measured; return 1 if there is one."""
    parser = argparse.ArgumentParser(description="Tell of servers that could not be measured.")
    parser.add_argument("dataset")
    dataset = parser.parse_args().dataset
    found = problems(dataset)
    for server, (trials, outcome, reason) in found.items():
        print(
            f"deathmatch: servers/{server}: {outcome}, in {trials} trials:\n"
            + "".join(f"    {line}\n" for line in reason.splitlines()[-8:])
            + f"  mend servers/{server} and run again; or to try it again unchanged:"
            f" rm -r build/servers/{server} data/{dataset}/*/{server}",
            file=sys.stderr,
        )
    return 1 if found else 0


def problems(dataset: str) -> dict[str, tuple[int, str, str]]:
    """Return {server: (trials that failed, outcome, reason)} of the first failure of each."""
    found: dict[str, tuple[int, str, str]] = {}
    measured = [trial.path / "trial.json" for trial in matrix.trials(dataset)]
    for path in sorted(path for path in measured if path.exists()):
        trial = json.loads(path.read_text())
        if trial["outcome"] in UNMEASURED:
            before = found.get(trial["server"], (0, trial["outcome"], trial["reason"]))
            found[trial["server"]] = (before[0] + 1, *before[1:])
    return found


if __name__ == "__main__":
    run_main(main)
