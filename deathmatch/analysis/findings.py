"""The study's nine findings, as a dataset shows them: data/published/findings.toml, evaluated.

In: that file, and the tables of a dataset. Out: for each finding whether it holds, its number with
its interval, and why where it could not be told. The verdict is the ledger's (`judging`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain
from typing import Any, Literal

import polars as pl
from pydantic import Field

from deathmatch.analysis import by_trial, judging, phrases, selecting, trial_tests, views
from deathmatch.analysis.by_trial import Values, counted
from deathmatch.analysis.judging import Judgement, Part
from deathmatch.analysis.stats import Interval
from deathmatch.data import sittings, table_files, tables
from deathmatch.plan import files, validation_errors
from deathmatch.plan.paths import ROOT
from deathmatch.plan.spec import Many, Spec
from deathmatch.quantities.definitions import QUANTITIES
from deathmatch.quantities.quantity import RATE, Kind, Quantity, of_experiment

FILE = ROOT / "data" / "published" / "findings.toml"
REFERENCE = "reference"
"""The dataset that others are compared with."""
HOLDS, FAILS, OPEN, NOT_MEASURED = "yes", "no", "could not be told", "not measured"
STANDINGS = (HOLDS, FAILS, OPEN, NOT_MEASURED)
Selector = dict[str, str | int]


class Comparison(Spec):
    """One comparison of a finding; the head of findings.toml explains its keys."""

    what: str = Field(min_length=1)
    a: Selector | Many[Any]
    b: Selector | Many[Any] | None = None
    statistic: Literal[*QUANTITIES]
    rate: Literal["lowest", "highest"] | None = None
    least_s: int = Field(0, ge=0)
    low: float | int = -judging.INFINITE
    high: float | int = judging.INFINITE

    @property
    def quantity(self) -> Quantity:
        """The quantity that is compared."""
        return QUANTITIES[self.statistic]

    @property
    def sides(self) -> list[list[Selector]]:
        """The selectors of a, and of b if there is one: each a list of which the first counts."""
        given = [self.a] if self.b is None else [self.a, self.b]
        return [[side] if isinstance(side, dict) else list(side) for side in given]


class Finding(Spec):
    """One finding; the head of findings.toml explains its keys."""

    name: str = Field(pattern=r"^[a-z]+(_[a-z]+)*$")
    experiment: str
    chapter: str
    sentence: str
    measure: str
    posts: str
    published: float | int | None = None
    comparisons: Many[Comparison] = Field(min_length=1)


class _File(Spec):
    finding: Many[Finding]


@dataclass(frozen=True)
class Shown:
    """One comparison as a dataset shows it.

    `titles`: of the servers compared. `where`: at which rate, for how long, by which client and in
    how many trials. `why`: why it has no number, or decides nothing; "" otherwise.
    """

    comparison: Comparison
    titles: tuple[str, ...]
    part: Part
    judgement: Judgement
    where: str
    why: str

    @property
    def what(self) -> str:
        """The comparison in a few words, with the titles of what was compared."""
        return _named(self.comparison.what, self.titles)

    @property
    def _is_count(self) -> bool:
        return len(self.part.sides) == 1 and self.comparison.quantity.kind == Kind.COUNT

    @cached_property
    def interval(self) -> Interval:
        """The mean over trials with Student's interval; of counts the range of the trials.

        It has finite ends, or none.
        """
        known = self.judgement.interval if self._is_count else _effect(self.part)
        finite = None not in (known.low, known.high) and math.isfinite(known.high - known.low)
        return known if finite else Interval(known.trials, known.estimate)

    @property
    def number(self) -> str:
        """The number with its interval and unit, as "0.82 [0.80, 0.84] times"; "" without one."""
        return self.text_of(self.interval)

    @property
    def middle(self) -> str:
        """The number with its unit alone, as "0.82 times"; "" without one."""
        return self.text_of(Interval(self.interval.trials, self.interval.estimate))

    def text_of(self, known: Interval) -> str:
        """Return an interval, or a bound, of what is compared with its unit."""
        quantity = self.comparison.quantity
        if known.estimate is None or not math.isfinite(known.estimate):
            return ""
        if len(self.part.sides) == 2:
            return f"{_brackets(known)} times"
        if self._is_count:
            span = _range([known.low or known.estimate, known.high or known.estimate])
            return (
                span if known.low is None else f"{span} in {phrases.counted(known.trials, 'trial')}"
            )
        if quantity.unit == "µs" and known.estimate >= 1000:
            return f"{_brackets(known.scaled(1e-3))} ms"
        return f"{_brackets(known)} {quantity.unit}".strip()


@dataclass(frozen=True)
class Result:
    """A finding as a dataset shows it."""

    finding: Finding
    dataset: str
    shown: tuple[Shown, ...]

    @property
    def sentence(self) -> str:
        """The finding in words, with the servers that were measured."""
        return _named(self.finding.sentence, self.shown[0].titles)

    @property
    def measure(self) -> str:
        """What the number is, with the servers that were measured."""
        return _named(self.finding.measure, self.shown[0].titles)

    @property
    def number(self) -> str:
        """The number of the first comparison; "" without one."""
        return self.shown[0].number

    @property
    def values(self) -> dict[str, str]:
        """Phrases for prose, by name: what is said of it, its sentence, its number and measure.

        The sentence of a finding that does not hold is a question, and its number the answer.
        """
        name, holds = self.finding.name, self.standing == HOLDS
        return {
            name: self._said,
            f"{name}_sentence": self.sentence if holds else f"{self.sentence}?",
            f"{name}_number": self.shown[0].middle if holds else self.standing,
            f"{name}_measure": self.measure,
        }

    @property
    def _said(self) -> str:
        """The finding as the first sentence of a text, with its number or with why it has none."""
        if self.standing == HOLDS:
            known = self.shown[0]
            where = f"{known.where}, dataset {self.dataset}"
            return f"{self.sentence} ({self.measure}: {known.middle}, {where})."
        return f"{self.sentence}? {self.verdict[0].upper()}{self.verdict[1:]}."

    @cached_property
    def standing(self) -> str:
        """Whether the finding holds: one of STANDINGS."""
        verdicts = [one.judgement.verdict for one in self.shown]
        if judging.NOT in verdicts:
            return FAILS
        if all(verdict == judging.REPLICATED for verdict in verdicts):
            return HOLDS
        sides = [side for one in self.shown for side in one.part.sides]
        return OPEN if any(side or side.hidden for side in sides) else NOT_MEASURED

    @property
    def why(self) -> str:
        """What was seen where it does not hold, or why it could not be told; "" where it holds."""
        if self.standing == HOLDS:
            return ""
        wanted = judging.NOT if self.standing == FAILS else None
        one = next(
            one for one in self.shown
            if (one.judgement.verdict == wanted if wanted
                else one.judgement.verdict != judging.REPLICATED)
        )  # fmt: skip
        return f"{one.what}: {one.why}" if len(self.shown) > 1 else one.why

    @property
    def verdict(self) -> str:
        """The standing with its reason, as a cell of a table has it."""
        return f"{self.standing}: {self.why}" if self.why else self.standing


def load() -> tuple[Finding, ...]:
    """Return the findings in their order; UserError with file and key for a mistake."""
    return _load(FILE.stat().st_mtime_ns)


@cache
def _load(_mtime_ns: int) -> tuple[Finding, ...]:
    raw = validation_errors.parse(FILE.read_bytes(), FILE.name)
    return validation_errors.validated(_File, raw, FILE.name).finding


def evaluate(dataset: str) -> list[Result]:
    """Return each finding as a dataset shows it."""
    sittings.check_complete(dataset)
    return [_result(dataset, finding) for finding in load()]


def of_reference() -> list[Result]:
    """Return each finding as the reference shows it.

    As the reference itself does, or else the first of the datasets that its file names which
    decides it.
    """
    others = [*table_files.deciders(REFERENCE), *files.dataset(REFERENCE).also]
    found = []
    for finding in load():
        own = _result(REFERENCE, finding)
        # A dataset is read only where those before it decide nothing.
        results = chain([own], (_result(dataset, finding) for dataset in others))
        found.append(next((one for one in results if one.standing in (HOLDS, FAILS)), own))
    return found


def headline(results: Sequence[Result]) -> str:
    """Return "Nine findings: seven hold, one does not, one could not be told"."""
    words = {HOLDS: ("holds", "hold"), FAILS: ("does not", "do not"),
             OPEN: ("could not be told",) * 2, NOT_MEASURED: ("was not measured",
                                                              "were not measured")}  # fmt: skip
    counts = {standing: sum(one.standing == standing for one in results) for standing in STANDINGS}
    parts = [
        f"{_WORDS[count]} {words[standing][count > 1]}"
        for standing, count in counts.items()
        if count
    ]
    return f"{_WORDS[len(results)].capitalize()} findings: {', '.join(parts)}"


_WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def _result(dataset: str, finding: Finding) -> Result:
    family = len(finding.comparisons)
    shown = (_shown(dataset, finding.experiment, one, family) for one in finding.comparisons)
    return Result(finding, dataset, tuple(shown))


def _shown(dataset: str, experiment: str, comparison: Comparison, family: int) -> Shown:
    """Return one comparison of a dataset, judged as one of a family of so many."""
    chosen = [_measured(dataset, experiment, side) for side in comparison.sides]
    titles = tuple(files.server(str(selector["server"])).title for selector, _ in chosen)
    frames = [frame for _, frame in chosen]
    lasting = [_lasting(frame, comparison.least_s) for frame in frames]
    rate = _rate(lasting, comparison) if all(len(frame) for frame in lasting) else None
    at_rate = [frame if rate is None else frame.filter(pl.col(RATE) == rate) for frame in lasting]
    quantity = comparison.quantity
    sides = [_values(frame, experiment, dataset, quantity) for frame in at_rate]
    part = Part(sides, comparison.low, comparison.high)
    judged = _judged(part, family) if all(sides) else judging.NOTHING_RAN
    known = Shown(comparison, titles, part, judged, _where(at_rate, sides), "")
    why = _why_absent(dataset, experiment, comparison, chosen, lasting, sides) or _why(known)
    return replace(known, why=why)


def _judged(part: Part, family: int) -> Judgement:
    """Return the judgement on a part: of a count by its trials, else by the ledger's test.

    Three trials, or four, would not decide a count against one half.
    """
    if part.sides[0].kind != Kind.COUNT or len(part.sides) > 1:
        return judging.tested(part, family)
    values = part.sides[0].all
    inside = [part.low < value < part.high for value in values]
    if len(values) < judging.MINIMUM_TRIALS or any(inside) != all(inside):
        verdict = judging.OPEN
    else:
        verdict = judging.REPLICATED if all(inside) else judging.NOT
    return Judgement(Interval(len(values), min(values), min(values), max(values)), verdict)


def _measured(
    dataset: str, experiment: str, side: Sequence[Selector]
) -> tuple[Selector, pl.DataFrame]:
    """Return the first selector that has points, with these; the first without any if none has."""
    for selector in side:
        frame = selecting.selected(dataset, experiment, selector, table=_points)
        if frame is not None:
            at = selector.get(RATE)
            return selector, frame if at is None else frame.filter(pl.col(RATE) == at)
    return side[0], pl.DataFrame()


def _points(dataset: str, experiment: str) -> pl.DataFrame | None:
    """Return the points of an experiment by any load generator; None if there are none."""
    points = _table(dataset, experiment, "points")
    return None if points is None else of_experiment(points, experiment)


def _trials(dataset: str, experiment: str) -> pl.DataFrame | None:
    return _table(dataset, experiment, "trials")


@cache
def _table(dataset: str, experiment: str, name: str) -> pl.DataFrame | None:
    """Return a table of any load generator; `recorded` is the variant as the tables name it."""
    if not table_files.path_of(dataset, experiment, name).is_file():
        return None
    frame = tables.read(dataset, experiment, name).with_columns(recorded="variant")
    return tables.of_any_client(frame)


def _lasting(frame: pl.DataFrame, least_s: int) -> pl.DataFrame:
    """Return the points that were offered for so long."""
    if not least_s or frame.is_empty():
        return frame
    return frame.filter(pl.col("duration_us") >= 1_000_000 * least_s)


def _rate(frames: list[pl.DataFrame], comparison: Comparison) -> int | None:
    """Return the lowest or the highest rate that counts in enough trials of all sides.

    The lowest or highest of all if there is none.
    """
    if comparison.rate is None or RATE not in frames[0].columns:
        return None
    choose = min if comparison.rate == "lowest" else max
    every = set.intersection(*(set(frame.filter(pl.col(RATE) > 0)[RATE]) for frame in frames))
    trials = [
        dict(counted(frame).unique(["n", RATE])[RATE].value_counts().iter_rows())
        for frame in frames
    ]
    fewest = {rate: min(counts.get(rate, 0) for counts in trials) for rate in every}
    enough = {rate for rate, count in fewest.items() if count >= judging.MINIMUM_TRIALS}
    some = {rate for rate, count in fewest.items() if count}
    return choose(enough or some or every, default=None)


def _values(frame: pl.DataFrame, experiment: str, dataset: str, quantity: Quantity) -> Values:
    if frame.is_empty():
        return Values()
    variant = selecting.variant_of(frame, quantity.points)
    if quantity.of_histogram:
        named = variant.points.with_columns(variant="recorded")
        timed = by_trial.joined(dataset, experiment, named, quantity.of_histogram)
        variant = replace(variant, points=timed)
    return variant.values(quantity)


def _effect(part: Part) -> Interval:
    """Return the interval of a part as the test has it; NO_TRIAL where a value has no place."""
    if not all(part.sides):
        return Interval()
    try:
        return judging.effect(part.sides, part.paired, trial_tests.ERROR)
    except ValueError:
        return judging.effect(part.sides, part.paired)


def _where(frames: list[pl.DataFrame], sides: Sequence[Values]) -> str:
    """Return "at 3 000 req/s, 5 s each, n = 3" of the points that were compared."""
    if not all(sides):
        return ""
    counts = sorted({len(side) for side in sides})
    n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    if RATE not in frames[0].columns:
        return n
    rates = sorted({rate for frame in frames for rate in frame[RATE]})
    offered = "closed loop" if rates == [0] else f"at {_range(rates)} req/s"
    seconds = sorted({us / 1e6 for frame in frames for us in frame["duration_us"].drop_nulls()})
    return f"{offered}, {_range(seconds)} s each, {n}"


def _range(values: list[float]) -> str:
    low, high = (
        phrases.number(end, 0 if end == int(end) else 1) for end in (values[0], values[-1])
    )
    return low if low == high else f"{low} to {high}"


def _why_absent(
    dataset: str,
    experiment: str,
    comparison: Comparison,
    chosen: list[tuple[Selector, pl.DataFrame]],
    lasting: list[pl.DataFrame],
    sides: Sequence[Values],
) -> str:
    """Return why a comparison has no number, or "" if it has one."""
    for (selector, frame), long_enough, side in zip(chosen, lasting, sides):
        if side:
            continue
        name = selecting.selector_phrase(selector)
        if frame.is_empty():
            return _why_no_point(dataset, experiment, selector, name)
        if long_enough.is_empty():
            longest = frame["duration_us"].max() / 1e6
            return f"{name}: points of {longest:g} s, where {comparison.least_s} s are needed"
        # Points that count lack what the quantity is made of.
        why = (
            f"no {comparison.quantity.title} was recorded"
            if len(counted(long_enough))
            else views.why_not_measured({"outcome": "measured"}, long_enough)
        )
        return f"{name}: {why}"
    return ""


def _why_no_point(dataset: str, experiment: str, selector: Selector, name: str) -> str:
    """Return why a variant has no point: what its trials say, or that there are none."""
    tried = selecting.selected(dataset, experiment, selector, table=_trials)
    if tried is None:
        return f"{name} is not in this dataset"
    return f"{name}: {views.why_not_measured(tried.row(0, named=True), pl.DataFrame())}"


def _why(known: Shown) -> str:
    """Return what keeps a comparison with a number from holding, or "" if it holds."""
    verdict, comparison = known.judgement.verdict, known.comparison
    if verdict == judging.REPLICATED:
        return ""
    bounds = {"more than": comparison.low, "less than": comparison.high}
    wanted = " and ".join(
        f"{words} {known.text_of(Interval(1, bound))}"
        for words, bound in bounds.items()
        if math.isfinite(bound)
    )
    if verdict == judging.NOT:
        return f"{known.number}, where {wanted} was expected"
    trials = known.interval.trials
    if trials < judging.MINIMUM_TRIALS:
        return f"{phrases.counted(trials, 'trial')}, where {judging.MINIMUM_TRIALS} are needed"
    return f"too noisy: {known.number}, where {wanted} is expected"


def _named(text: str, titles: tuple[str, ...]) -> str:
    a, b = (*titles, "", "")[:2]
    return text.replace("{a}", a).replace("{b}", b)


def _brackets(known: Interval) -> str:
    """Return an interval with three digits, or with all before the point."""
    size = abs(known.estimate or 0)
    return phrases.brackets(
        known, 0 if size >= 100 or size == int(size) else 1 if size >= 10 else 2
    )
