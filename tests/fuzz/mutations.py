"""Inputs that were valid before something happened to them, as strategies of hypothesis."""

import re

from hypothesis import strategies as st

# What stands in the place of a number or of a quoted text.
NUMBERS = [
    "", "-1", "-0.0", "0", "1.2.3", ".", "nan", "-nan", "inf", "-inf", "1e400", "-1e-400", "1_000",
    "0x10", "٣", "²", "9" * 19, "9" * 30, "9" * 400, "9" * 5000, "1" + "0" * 18 + ".5", "--1", "+1",
    "1 2", "1,2", "true", "null", "[]", "{}", "[[1]]", '{"a": 1}', '"1"', "2001-99-99", "99:99:99",
]  # fmt: skip
TEXTS = [
    "", " ", "\0", "\n", "\r", "\u2028", "\x85", "\ufeff", "../..", "/etc/passwd", "a" * 300,
    "-n", "--help", "; touch PWNED", "$(touch PWNED)", "`touch PWNED`", "'", '"', "{", "}", "{0}",
    "{host.__class__}", "{a*99999999999}", "%s", "*", "[", "\\", "<script>", "null", "~", "&a",
    "!!python/object/apply:os.system", "a=b", ",", "%", "[" * 3000, '{"a":' * 3000, "a." * 3000,
]  # fmt: skip
_VALUE = re.compile(rb'-?\d+(?:\.\d+)?|"[^"\n]*"|true|false|null')


@st.composite
def text(draw: st.DrawFn, *seeds: bytes) -> bytes:
    """Return one of the seeds with one to four things changed: bytes, values, words or lines."""
    found = draw(st.sampled_from(seeds))
    for change in draw(st.lists(st.sampled_from(_CHANGES), min_size=1, max_size=4)):
        found = change(draw, found)
    return found


def _hole(draw: st.DrawFn, found: bytes) -> bytes:
    at = draw(st.integers(0, len(found)))
    return found[:at] + found[at + draw(st.sampled_from((1, 2, 8, 100, len(found)))) :]


def _inserted(draw: st.DrawFn, found: bytes) -> bytes:
    at = draw(st.integers(0, len(found)))
    more = st.sampled_from(TEXTS).map(str.encode) | st.binary(min_size=1, max_size=2)
    return found[:at] + draw(more) + found[at:]


def _value(draw: st.DrawFn, found: bytes) -> bytes:
    places = [match.span() for match in _VALUE.finditer(found)]
    if not places:
        return found
    start, end = draw(st.sampled_from(places))
    more = st.sampled_from(NUMBERS) | st.sampled_from(TEXTS).map('"{}"'.format)
    return found[:start] + draw(more).encode() + found[end:]


def _lines(draw: st.DrawFn, found: bytes) -> bytes:
    """Move, repeat or drop lines."""
    lines = found.split(b"\n")
    at = st.integers(0, len(lines) - 1)
    one, other, kept = draw(at), draw(at), draw(st.booleans())
    lines[one : one + kept] = draw(st.sampled_from(([], [lines[other]], lines[other:])))
    return b"\n".join(lines)


_CHANGES = [_value, _hole, _inserted, _lines]
