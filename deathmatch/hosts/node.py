"""Runs on a cluster, where each job has a machine of its own: are these of one kind?"""

import os
from collections.abc import Iterable, Iterator

RUN = "DEATHMATCH_RUN"
"""The name of the run that a job belongs to; set on a cluster only, by whoever submits it."""

MEMORY_SHARE = 0.1
"""By how much of the larger one the memories of two machines of one kind may differ: what Linux
calls its total leaves out what firmware and kernel took, which is never quite the same."""


def on_cluster() -> bool:
    """Return whether this process belongs to a run on a cluster: to a job, or to what submits."""
    return RUN in os.environ


def differences(records: Iterable[tuple[str, dict]]) -> Iterator[tuple[str, dict[str, str]]]:
    """Return each property in which machines differ, with {its value: where it was first seen}.

    A record is (where, trial), the latter as in `trial.json`, of which `machine` is read.
    """
    kinds: dict[str, dict] = {key: {} for key in ("cpu", "cpus", "memory_bytes", "os")}
    for where, trial in records:
        for key, values in kinds.items():
            value = trial.get("machine", {}).get(key)
            if value is not None and not any(_same(key, value, other) for other in values):
                values[value] = where
    for key, values in kinds.items():
        if len(values) > 1:
            yield key, {f"{value}": where for value, where in values.items()}


def _same(key: str, value, other) -> bool:
    if key == "memory_bytes":
        return abs(value - other) <= MEMORY_SHARE * max(value, other)
    return value == other
