"""Inputs that were valid before something happened to them; the same seed gives the same input."""

import copy
import json
import random
import re
from collections.abc import Sequence
from typing import Any

NUMBERS = [
    "", "-1", "-0.0", "0", "1.2.3", ".", "nan", "-nan", "inf", "-inf", "1e400", "-1e-400", "1_000",
    "0x10", "٣", "²", "9" * 19, "9" * 30, "9" * 400, "9" * 5000, "1" + "0" * 18 + ".5", "--1", "+1",
    "1 2", "1,2", "true", "null", '"1"', "2001-99-99", "99:99:99", "0b", "!!python/none",
]  # fmt: skip
TEXTS = [
    "", " ", "\0", "\n", "\r", "\u2028", "\x85", "\ufeff", "../..", "/etc/passwd", "a" * 300,
    "-n", "--help", "; touch PWNED", "$(touch PWNED)", "`touch PWNED`", "'", '"', "{", "}", "{0}",
    "{host.__class__}", "{a*99999999999}", "%s", "*", "[", "\\", "\ud800", "<script>", "null", "~",
    "&a", "!!python/object/apply:os.system", "a=b", ",", "%",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308,
    float("nan"), float("inf"), float("-inf"), [], {}, [[]], [{}], {"": {}}, [None], ["a", 1],
    *TEXTS,
]  # fmt: skip
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")


def text(chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Return one of the seeds with one to four things changed: bytes, numbers, words or lines."""
    found = chance.choice(seeds)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        found = chance.choice(_CHANGES)(chance, found, seeds)
    return found


def _byte(chance: random.Random, found: bytes, seeds: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(found) + 1)
    return found[:at] + bytes([chance.randrange(256)]) + found[at + chance.randrange(2) :]


def _cut(chance: random.Random, found: bytes, seeds: Sequence[bytes]) -> bytes:
    return found[: chance.randrange(len(found) + 1)]


def _hole(chance: random.Random, found: bytes, seeds: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(found) + 1)
    return found[:at] + found[at + chance.choice((1, 2, 8, 100)) :]


def _number(chance: random.Random, found: bytes, seeds: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(found) + 1)
    if not (match := _NUMBER.search(found, at) or _NUMBER.search(found)):
        return found
    return found[: match.start()] + chance.choice(NUMBERS).encode() + found[match.end() :]


def _inserted(chance: random.Random, found: bytes, seeds: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(found) + 1)
    return found[:at] + chance.choice(TEXTS).encode(errors="surrogatepass") + found[at:]


def _lines(chance: random.Random, found: bytes, seeds: Sequence[bytes]) -> bytes:
    lines = found.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            del lines[one]
        case 1:
            lines.insert(one, lines[other])
        case 2:
            lines[one], lines[other] = lines[other], lines[one]
        case 3:
            lines[one:one] = chance.choice(seeds).split(b"\n")[:other]
    return b"\n".join(lines)


def _nested(chance: random.Random, found: bytes, seeds: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(found) + 1)
    return found[:at] + chance.choice((b"[", b"{", b'{"a":', b"a.")) * 3000 + found[at:]


# The last is rare: its inputs are long.
_CHANGES = [_byte, _cut, _hole, _lines, _inserted, *[_number] * 4] * 4 + [_nested]


def value(chance: random.Random, seeds: Sequence[Any]) -> Any:
    """Return one of the seeds, nests of dicts and lists, with one to three of its parts changed."""
    found = copy.deepcopy(chance.choice(seeds))
    for _ in range(chance.choice((1, 1, 2, 3))):
        places = list(_places(found))
        if not places:
            return found
        inside, key = chance.choice(places)
        _change(chance, inside, key, places)
    return found


def _places(found: Any) -> list[tuple[Any, Any]]:
    keys = found if isinstance(found, dict) else range(len(found))
    return [(found, key) for key in keys] + [
        place
        for key in keys if isinstance(found[key], dict | list)
        for place in _places(found[key])
    ]  # fmt: skip


def _change(chance: random.Random, inside: Any, key: Any, places: list[tuple[Any, Any]]) -> None:
    match chance.randrange(8):
        case 0:
            del inside[key]
        case 1 if isinstance(inside, dict):
            inside[chance.choice(TEXTS) if chance.random() < 0.7 else f"{key}x"] = inside.pop(key)
        case 1:
            inside.append(copy.deepcopy(inside[key]))
        case 2:
            # Something that is right elsewhere.
            other, at = chance.choice(places)
            inside[key] = copy.deepcopy(other[at])
        case 3 if isinstance(inside[key], int | float) and not isinstance(inside[key], bool):
            inside[key] += chance.choice((-1, 1, 0.5, -(10**6), 10**12))
        case 4 if isinstance(inside[key], str):
            at = chance.randrange(len(inside[key]) + 1)
            inside[key] = inside[key][:at] + chance.choice(TEXTS) + inside[key][at:]
        case _:
            inside[key] = copy.deepcopy(chance.choice(VALUES))


def toml(found: dict[str, Any]) -> str:
    """Return a dict as TOML, its tables inline; what TOML has no word for is left out."""
    return "".join(f"{pair}\n" for pair in _pairs(found))


def _pairs(found: dict[str, Any]) -> list[str]:
    return [f"{_toml(key)} = {_toml(value)}" for key, value in found.items() if value is not None]


def _toml(found: Any) -> str:
    match found:
        case dict():
            return f"{{{', '.join(_pairs(found))}}}"
        case list() | tuple():
            return f"[{', '.join(_toml(inner) for inner in found if inner is not None)}]"
        case float():
            return str(found)
    # JSON's words are TOML's too, but for the bare delete character.
    return json.dumps(found, default=str).replace("\x7f", "\\u007f")
