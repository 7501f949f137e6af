"""What it would take to decide a claim that is inconclusive: trials, time, and of which variants.

In: the parts of its rule that are open, as `rules.decide` returns them. Out: the keys of SCHEMA.
All of it is by the sequential test, whichever way the dataset is judged, and by the spread between
the trials that there are. Three trials know a spread badly: its 95 % interval goes from half of it
to six times (chi-squared, two degrees of freedom).
"""

import math

import polars as pl

from deathmatch.analysis import published, selecting, sequential

SCHEMA = {
    "detectable": pl.Float64,  # the ratio to the threshold that its trials could have detected
    "needed_trials": pl.Int64,  # at which look the ratio measured would be detected; null: at none
    "needed_s": pl.Float64,  # how long the further trials take, of all that it compares
    "variants": pl.List(pl.String),  # what is compared, as folders below the dataset's
}
NONE = dict.fromkeys(SCHEMA) | {"variants": []}


def of(dataset: str, parts: list[dict]) -> dict:
    """Return what the open parts of a rule take, the dearest deciding; NONE without any."""
    if not parts:
        return NONE
    wanted = [_needed(part) for part in parts]
    needed = None if None in wanted else max(wanted)
    took_s: dict[str, float] = {}
    for part in parts:
        for named in part["compared"]:
            took_s |= _variants(dataset, *named)
    had = min(part["trials"] for part in parts)
    detectable = [factor for part in parts if (factor := _detectable(part)) is not None]
    return {
        "detectable": max(detectable, default=None),
        "needed_trials": needed,
        "needed_s": None if needed is None else (needed - had) * sum(took_s.values()),
        "variants": sorted(took_s),
    }


def _detectable(part: dict) -> float | None:
    at = sequential.look(part["trials"])
    if at is None or part["spread"] is None:
        return None
    return math.exp(sequential.detectable(part["spread"], at))


def _needed(part: dict) -> int | None:
    """Return the look after its trials at which the distance measured would be detected."""
    if part["spread"] is None or part["distance"] is None:
        return None
    return sequential.needed(part["spread"], part["distance"], part["trials"])


def _variants(dataset: str, experiment: str, rule: dict, selector: dict) -> dict[str, float]:
    """Return the variants that a selector chooses, with the median time of a trial in seconds."""
    experiment = selector.get("experiment", experiment)
    free = published.free(rule)
    found = {}
    for plain in selecting.divided_selectors(selector):
        frame = selecting.selected(dataset, experiment, plain, free, selecting.trials)
        if frame is None:
            continue
        for (server, variant), group in frame.group_by("server", "variant", maintain_order=True):
            found[f"{experiment}/{server}/{variant}"] = (group["wall_us"].median() or 0) / 1e6
    return found


def minutes(seconds: float) -> int:
    """Return a time in whole minutes, upward."""
    return max(1, math.ceil(seconds / 60))
