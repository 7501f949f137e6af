"""Computed statistics as phrases for prose, each number with its n and interval."""

import math

import polars as pl

from deathmatch.analysis.stats import Interval

THIN = "\u202f"  # narrow no-break space, between thousands and before %
# In brackets, as it replaces a number.
NOT_MEASURED = "(not measured in this dataset)"
# Ends every caption of CPU time.
CHARGED = "How packets are charged: @sec-method-packets."
SAME = "no difference that these trials show"

# By level of the factor `schedulers`.
CPUS = {"one": "one CPU", "all": "all CPUs", "all-and-one": "one process more than CPUs"}


def number(value: float | None, digits: int = 0) -> str:
    """Return a number with thin spaces between thousands: 12 345.6; NOT_MEASURED for None.

    A number that rounds to 0 has no sign.
    """
    return NOT_MEASURED if value is None else f"{value:z,.{digits}f}".replace(",", THIN)


def percent(share: float) -> str:
    """Return "95" for 0.95: the text says %."""
    return f"{100 * share:.0f}"


def code(text: str) -> str:
    """Return a name as Markdown shows it: `reference`."""
    return f"`{text}`"


def counted(number_of: int, noun: str) -> str:
    """Return "1 server" or "2 servers"."""
    return f"{number(number_of)} {noun}{'' if number_of == 1 else 's'}"


def part(some: int, whole: int) -> str:
    """Return "3 of 12"; NOT_MEASURED if the whole is 0."""
    return f"{number(some)} of {number(whole)}" if whole else NOT_MEASURED


def span(least: str, most: str) -> str:
    """Return "3 to 6", or "3" where both are the same."""
    return least if least == most else f"{least} to {most}"


def estimate(known: Interval, unit: str, digits: int = 0) -> str:
    """Return "7 440 req/s": the number alone, for texts that give its interval elsewhere."""
    if not known.trials:
        return NOT_MEASURED
    space = THIN if unit == "%" else " "
    return f"{number(known.estimate, digits)}{space if unit else ''}{unit}"


def interval(known: Interval, unit: str = "", digits: int = 0) -> str:
    """Return "7 440 req/s (interval 7 200 to 7 600, n = 3)", or "(n = 1)", or NOT_MEASURED.

    The level is not stated: the interval of few trials is their range at any level.
    """
    if not known.trials:
        return NOT_MEASURED
    middle = estimate(known, unit, digits)
    if known.low is None:
        return f"{middle} (n = {known.trials})"
    low, high = number(known.low, digits), number(known.high, digits)
    return f"{middle} (interval {low} to {high}, n = {known.trials})"


def brackets(known: Interval, digits: int = 0) -> str:
    """Return "7 440 [7 200, 7 600]" for a cell of a table; without an interval, the number."""
    middle = number(known.estimate, digits)
    if known.low is None:
        return middle
    return f"{middle} [{number(known.low, digits)}, {number(known.high, digits)}]"


def ratio(known: Interval) -> str:
    """Return "2.31 times (interval 2.20 to 2.44, n = 3)"."""
    return interval(known, "times", 2)


def ratio_with_direction(known: Interval) -> str:
    """Return a ratio of replies: "2.31 times (interval 2.20 to 2.44, n = 3), more"."""
    if not known.trials:
        return NOT_MEASURED
    return f"{ratio(known)}, {direction(known, 'more', 'fewer', SAME)}"


def pacing(points: pl.DataFrame) -> str:
    """Return a caption's sentence on how wsload paced its messages: its step and hold in µs."""
    names = ["client_step_us", "client_hold_us"]
    steps = points.select(names).drop_nulls().unique().sort(names).rows()
    known = [
        f"steps of {number(step_us)} µs with a hold of {number(hold_us)} µs"
        if step_us
        else "none, each message is sent when it is due"
        for step_us, hold_us in steps
    ]
    if not steps or points[names[0]].null_count():
        known.append("not recorded")
    return f"Pacing of the client: {'; or '.join(known)}."


def enumeration(names: list[str]) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def direction(known: Interval, higher: str, lower: str, same: str) -> str:
    """Return `higher` or `lower` if the interval of a ratio excludes 1, else `same`.

    A ratio without an interval decides nothing: it is `same`.
    """
    if not known.trials:
        return NOT_MEASURED
    if known.low is not None and known.low > 1:
        return higher
    if known.high is not None and known.high < 1:
        return lower
    return same


def change(first: Interval, second: Interval, higher: str, lower: str, same: str) -> str:
    """Return `higher` or `lower` if the second interval does not overlap the first, else `same`.

    Single trials, without an interval, are `same`; NOT_MEASURED if either has no trial.
    """
    if not first.trials or not second.trials:
        return NOT_MEASURED
    if None in (first.low, second.low):
        return same
    if second.low > first.high:
        return higher
    return lower if second.high < first.low else same


_SHARES = {
    1 / 10: "a tenth", 1 / 5: "a fifth", 1 / 4: "a quarter", 1 / 3: "a third", 2 / 5: "two fifths",
    1 / 2: "half", 3 / 5: "three fifths", 2 / 3: "two thirds", 3 / 4: "three quarters",
    4 / 5: "four fifths", 9 / 10: "nine tenths",
}  # fmt: skip
_TIMES = {2: "twice", 3: "three times", 4: "four times", 5: "five times", 6: "six times"}


def in_words(ratio: float) -> str:
    """Return a ratio in round words: "about two thirds", "about a tenth more", "about twice".

    A ratio within 3 % of 1 is "about the same".
    """
    if abs(ratio - 1) <= 0.03:
        return "about the same"
    if ratio < 1:
        return f"about {_share(ratio)}" if ratio >= 0.08 else "less than a tenth"
    if ratio < 1.85:
        return f"about {_share(ratio - 1)} more"
    half = round(2 * ratio) / 2
    if half < 10:
        return f"about {_TIMES.get(half, f'{half:g} times')}"
    return f"about {number(float(f'{ratio:.1g}'))} times"


def _share(part: float) -> str:
    """Return the share in words that is nearest on a logarithmic scale."""
    return _SHARES[min(_SHARES, key=lambda share: abs(math.log(share / part)))]
