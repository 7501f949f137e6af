"""Rules about emulated CPUs: the quota, and nothing else, held the server back."""

from collections.abc import Iterator

from deathmatch.checks.rule import Finding, Rules, Unknown, whole
from deathmatch.data import cpu_shares, emulation
from deathmatch.data.emulation import Speed
from deathmatch.data.strict.evidence import Evidence
from deathmatch.data.strict.measured import Measured
from deathmatch.data.strict.rule import AGAIN, THREATS, loaded
from deathmatch.quantities.quantity import REPLY

EMULATION = Rules(AGAIN, loaded)
LOOK = "take no ratio of these trials; measure them again on a quiet machine"


def _throttle(trial: Measured) -> dict:
    """Return what was in force of a trial on emulated CPUs; empty of any other."""
    throttle = trial.record.get("throttle") or {}
    return throttle if "emulated_cpus" in throttle else {}


@EMULATION.add("DM-EMULATED-RECORD", "reject", THREATS)
def guards_follow_from_the_samples(trial: Measured) -> Iterator[str | Unknown]:
    """What a record says of the guards of emulated CPUs follows from its samples and threads."""
    if not (throttle := _throttle(trial)):
        return
    if trial.samples.is_empty():
        yield Unknown("its samples are not there")
        return
    duration_us = 1e6 * trial.spec["duration_s"]
    points = [
        point | {"cpu": cpu_shares.shares(trial.samples, point["offered_rate_rps"], duration_us)}
        for point in trial.points
    ]
    guards = emulation.of_trial(points, throttle)
    due = guards and guards.record()
    if trial.record.get("emulation") != due:
        yield f"guards of {trial.record.get('emulation')}, where its samples give {due}"
    word = guards.word if guards else "not judged"
    if throttle.get("guards") != word:
        yield f"its throttle has guards {throttle.get('guards')!r}, where they are {word!r}"


@EMULATION.add("DM-EMULATED", "warn", THREATS, LOOK)
def guards_are_met(trial: Measured) -> Iterator[str]:
    """On emulated CPUs the server used up its share, the client was not the limit, and every worker
    served.
    """
    if _throttle(trial):
        seen = trial.record.get("emulation") or {"broken": ["not judged"]}
        for name in seen["broken"]:
            yield f"guard {name}: {seen}"


@EMULATION.add("DM-EMULATED-SPEEDS", "warn", THREATS, LOOK, scope=whole)
def speeds_agree(evidence: Evidence) -> Iterator[Finding]:
    """On emulated CPUs two lengths of periods give the same speed, and no speed-up is larger than
    what replies cost allows.
    """
    speeds = [speed for trial in evidence.loaded if (speed := _speed(trial))]
    for variant, name, seen in emulation.of_several(speeds):
        yield Finding(f"guard {name}: {seen}", f"{evidence.named}/{'/'.join(variant)}")


def _speed(trial: Measured) -> Speed | None:
    throttle = _throttle(trial)
    known = [
        row for row in trial.rows if row.get(REPLY) and row.get("replies")
        and row.get("server_cpu_ns")
    ]  # fmt: skip
    if not throttle or not known:
        return None
    best = max(known, key=lambda row: row[REPLY])
    experiment, server, variant, _ = trial.key
    rest = [part for part in variant.split(",") if not part.startswith("schedulers=")]
    return Speed(
        (experiment, server, ",".join(rest)), trial.factors.get("schedulers", "one"),
        throttle["emulated_cpus"], throttle["cpu_period_us"], best[REPLY],
        best["server_cpu_ns"] / best["replies"],
    )  # fmt: skip
