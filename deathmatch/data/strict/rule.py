"""What the rules of the strict check have in common: clauses, scopes and the usual remedy.

Severities: "reject", the dataset does not say what was measured; "warn", it does, but a reader must
look at these points; "note", a reader who compares must know. Clauses are sections of
notebooks/00-method.md.
"""

from collections.abc import Iterator

from deathmatch.data.strict.evidence import Evidence
from deathmatch.data.strict.measured import Measured

AGAIN = "remove the trial's folder and run snakemake: it is measured again"
DESIGN, LOAD = "sec-method-design", "sec-method-load"
DATA, THREATS = "sec-method-data", "sec-method-threats"
STATISTICS = "sec-method-statistics"


def every(evidence: Evidence) -> Iterator[tuple[str, Measured]]:
    """Return the scope of a rule that looks at each trial."""
    return ((trial.where, trial) for trial in evidence.trials)


def readable(evidence: Evidence) -> Iterator[tuple[str, Measured]]:
    """Return the scope of a rule that looks at each trial whose record can be read."""
    return ((trial.where, trial) for trial in evidence.readable)


def loaded(evidence: Evidence) -> Iterator[tuple[str, Measured]]:
    """Return the scope of a rule that looks at each trial that was measured under load."""
    return ((trial.where, trial) for trial in evidence.loaded)
