"""The settings that a load generator's report repeats, to be compared with those of its command.

In: a report's text, or the words of a command. Out: {setting: value}, in the same words for both,
of the settings that decide what was offered.
"""

import json
import re
import shlex
from collections.abc import Callable, Mapping

from deathmatch.load import roundtrip_calls
from deathmatch.load.generator import Part
from deathmatch.load.httperf import VALUES as VALUES_FILE
from deathmatch.plan.root import ROOT

HTTPERF = ("uri", "rate", "num-conns", "num-calls", "timeout", "add-header")
# Each of several clients has its own; what is offered does not depend on them.
PLACES = ("--source=", "--start-at=")
# A file of the project, wherever the host has it.
VALUES = re.compile(r"(?<=[,=])[^\s,=]*(?=clients/httperf/)")


def options(words: list[str]) -> dict[str, str]:
    """Return {name: value} of a command's long options; one without a value has an empty one."""
    pairs = (word.removeprefix("--").partition("=") for word in words if word.startswith("--"))
    return {name: value for name, _, value in pairs}


def command(text: str) -> list[str]:
    """Return a recorded command's words, the program's and those of a place left out.

    The first records joined words without quotes: an option goes on to where the next begins.
    """
    marked = VALUES.sub("", text).replace(" -v", "").partition(" ")[2].split(" --")
    words = [part if part.startswith("--") else f"--{part}" for part in marked]
    return sorted(
        word.replace("'", "").replace("///", "//") for word in words
        if not word.startswith(PLACES)
    )  # fmt: skip


def httperf(text: str) -> dict[str, str] | None:
    """Return what the first line of httperf's report repeats; None if it repeats nothing."""
    line = re.search("^httperf --.*", text, re.MULTILINE)
    return None if line is None else _httperf_settings(shlex.split(line[0]))


def httperf_due(words: list[str], load: Mapping) -> dict[str, str]:
    """Return the same settings of its command."""
    # Instead of a list of addresses it repeats its default address, which it does not use then.
    return {"uri": "/"} | _httperf_settings(words)


def _httperf_settings(words: list[str]) -> dict[str, str]:
    return {name: value for name, value in options(words).items() if name in HTTPERF}


def roundtrip(text: str) -> dict[str, str] | None:
    """Return what the head of roundtrip's report repeats."""
    head = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    if "loop" not in head:
        return None
    return {
        "loop": head["loop"],
        "rate": f"{float(head['offered_rate_rps']):.3f}",
        "duration": f"{int(head['offered_duration_us']) / 1e6:g}",
        "request_bytes": head["request_bytes"],
    }


def roundtrip_due(words: list[str], load: Mapping) -> dict[str, str]:
    """Return the same settings of its command."""
    given = options(words)
    return {
        "loop": "calls" if "calls" in given else "closed" if float(given["rate"]) == 0 else "open",
        "rate": f"{_own_rate(given):.3f}",
        "duration": given["duration"],
        "request_bytes": str(_request_bytes(given, load)),
    }


def _own_rate(given: Mapping[str, str]) -> float:
    """Return the rate of one of several clients, which its report has, in its own share."""
    rate, place = float(given["rate"]), given.get("client")
    if place is None:
        return rate
    part = Part(*map(int, place.split("/")))
    everyones = int(given.get("connections", 0))
    return rate / part.of if "calls" in given else rate * part.share(everyones) / everyones


def _request_bytes(given: Mapping[str, str], load: Mapping) -> int:
    if "request" in load:
        return len(load["request"].encode("latin-1"))
    size = len(roundtrip_calls.request(load, given["host"]))
    if "targets" not in given:
        return size
    # All are as long as the first one.
    first = (ROOT / VALUES_FILE).read_bytes().index(0)
    return size - len("{target}") + first


WSLOAD = {
    "connections": "connections", "opening": "opening", "size": "size_bytes",
    "interval": "interval_us", "duration": "duration_us",
    "handshake-timeout": "handshake_timeout_us", "drain": "drain_us",
    "open-rate": "open_rate_cps",
}  # fmt: skip
# A command has one of these two; the report repeats both.
_WSLOAD_DEFAULTS = {"opening": "128", "open-rate": "max"}


def wsload(text: str) -> dict[str, str] | None:
    """Return what wsload's summary repeats."""
    try:
        arguments = json.JSONDecoder().raw_decode(text[text.index("{") :])[0]["arguments"]
        return {name: str(arguments[key]).removesuffix(".0") for name, key in WSLOAD.items()}
    except (ValueError, KeyError, TypeError):
        return None


def wsload_due(words: list[str], load: Mapping) -> dict[str, str]:
    """Return the same settings of its command."""
    given = _WSLOAD_DEFAULTS | options(words)
    return {name: given[name].removesuffix("us") for name in WSLOAD if name in given}


InReport = Callable[[str], dict[str, str] | None]
InCommand = Callable[[list[str], Mapping], dict[str, str]]
ECHOES: dict[str, tuple[InReport, InCommand]] = {
    "httperf": (httperf, httperf_due),
    "roundtrip": (roundtrip, roundtrip_due),
    "wsload": (wsload, wsload_due),
}
"""The settings that each load generator's report repeats, and the same settings of its command."""
