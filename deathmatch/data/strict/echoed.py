"""What a load generator's report says that it was told, beside what it should have been told.

In: a report's text, or the words of a command. Out: {setting: value}, in the same words for both,
of the settings that decide what was offered.
"""

import json
import re
import shlex
from collections.abc import Callable, Mapping

HTTPERF = ("uri", "rate", "num-conns", "num-calls", "timeout", "add-header")
# Of several clients each has its own; what is offered does not depend on them.
PLACES = ("--source=", "--start-at=")
# A file of the project, wherever the host has it.
VALUES = re.compile(r"(?<=,)\S*(?=clients/httperf/)")


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
    line = next((each for each in text.splitlines() if each.startswith("httperf --")), None)
    if line is None:
        return None
    told = options(shlex.split(line))
    return {name: told[name] for name in HTTPERF if name in told}


def httperf_told(words: list[str], load: Mapping) -> dict[str, str]:
    """Return the same of its command."""
    # It repeats no list of addresses, but its default of one, which it does not use then.
    told = {"uri": "/"} | options(words)
    return {name: told[name] for name in HTTPERF if name in told}


def roundtrip(text: str) -> dict[str, str] | None:
    """Return what the head of roundtrip's report repeats."""
    head = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    if "loop" not in head:
        return None
    rate = float(head["offered_rate_rps"])
    return {
        "loop": head["loop"],
        "rate": f"{rate:g}",
        "duration": f"{int(head['offered_duration_us']) / 1e6:g}",
        "request_bytes": head["request_bytes"],
    }


def roundtrip_told(words: list[str], load: Mapping) -> dict[str, str]:
    """Return the same of its command."""
    told = options(words)
    size = len(load["request"].encode("latin-1"))
    loop = "closed" if float(told["rate"]) == 0 else "open"
    return {
        "loop": loop, "rate": told["rate"], "duration": told["duration"],
        "request_bytes": str(size),
    }  # fmt: skip


WSLOAD = {
    "connections": "connections", "opening": "opening", "size": "size_bytes",
    "interval": "interval_us", "duration": "duration_us",
    "handshake-timeout": "handshake_timeout_us", "drain": "drain_us",
}  # fmt: skip


def wsload(text: str) -> dict[str, str] | None:
    """Return what wsload's summary repeats."""
    try:
        told = json.JSONDecoder().raw_decode(text[text.index("{") :])[0]["arguments"]
        return {name: str(told[key]) for name, key in WSLOAD.items()}
    except (ValueError, KeyError, TypeError):
        return None


def wsload_told(words: list[str], load: Mapping) -> dict[str, str]:
    """Return the same of its command."""
    told = options(words)
    return {name: told[name].removesuffix("us") for name in WSLOAD if name in told}


Said = Callable[[str], dict[str, str] | None]
Told = Callable[[list[str], Mapping], dict[str, str]]
ECHOES: dict[str, tuple[Said, Told]] = {
    "httperf": (httperf, httperf_told),
    "roundtrip": (roundtrip, roundtrip_told),
    "wsload": (wsload, wsload_told),
}
"""By load generator: what its report repeats, and the same of its command."""
