"""How far a dataset is and how long it will still take."""

import sys
from pathlib import Path

from deathmatch import matrix

OVERHEAD_S = 5  # start, checks, warm-up, drains and stop of a trial


def seconds(trial: matrix.Trial) -> float:
    """Return an estimate of how long the trial takes: its rates and a fixed overhead."""
    spec = matrix.spec(trial)
    return OVERHEAD_S + len(spec["rates_rps"]) * spec["duration_s"]


def left(dataset: str, root: Path = Path()) -> tuple[int, int, float]:
    """Return trials done, trials in all, and the estimated seconds for those not done."""
    trials = matrix.trials(dataset)
    todo = [trial for trial in trials if not (root / trial.path / "trial.json").exists()]
    return len(trials) - len(todo), len(trials), sum(map(seconds, todo))


def report(trial: matrix.Trial) -> None:
    """Print one line on standard error: which trial ended, how many are left, how long."""
    done, total, wait_s = left(trial.dataset)
    minutes = f"about {max(1, round(wait_s / 60))} min left" if wait_s else "all measured"
    name = f"{trial.experiment} {trial.server} {trial.variant} #{trial.n}"
    print(f"[{done}/{total} trials, {minutes}] {name}", file=sys.stderr)
