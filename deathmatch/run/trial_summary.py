"""How a trial ended, in one line for whoever waits for it.

In: its record, as in `trial.json`. Out: outcome, reason and where to read on.
"""

from pathlib import Path

from deathmatch.plan.record import MEASURED


def measured(record: dict) -> bool:
    """Return whether the server could be measured, whatever became of it under load."""
    return record["outcome"] in MEASURED


def line(record: dict, path: Path) -> str:
    """Return "did not start: ended before it listened (exit status 1); see <log>".

    The reason is the first line of the record's, or what became of the server or its answers first
    and at which rate. `path` is the trial's folder.
    """
    reason = reason_of(record)
    text = f"{record['outcome']}{': ' if reason else ''}{reason}"
    if record["outcome"] == "not built":
        return f"{text}; see build/servers/{record['server']}/build.log"
    if left_out_bytes := record.get("server_log", {}).get("left_out_bytes"):
        text += f"; {left_out_bytes / 1e6:,.0f} MB that it printed are left out of its log"
    in_record = not reason or record["outcome"] == "answers wrongly"
    return f"{text}; see {path}/{'trial.json' if in_record else 'server.log'}"


def reason_of(record: dict) -> str:
    """Return why it is not measured, or what became of it, in one line; empty if all went well."""
    stated = next(iter(record["reason"].strip().splitlines()), "")
    return stated or _became(record["points"])


def _became(points: list[dict]) -> str:
    for point in points:
        at = f"at {point.get('offered_rate_rps')} req/s"
        if point.get("server_state", "ran") != "ran":
            return f"{point['server_state']} {at}"
        if wrong := point.get("wrong_answers"):
            return f"{wrong} wrong answers {at}"
    return ""
