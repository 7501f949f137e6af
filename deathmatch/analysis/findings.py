"""The study's nine findings, as a dataset shows them: data/published/findings.toml, evaluated.

In: that file, and the tables of a dataset. Out: whether each finding holds, its number with its
interval, and the reason where it could not be told. The verdict is made as in the ledger
(`judging`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic import Field

from deathmatch.analysis import comparing, judging, phrases, published, selecting, trial_tests
from deathmatch.analysis.comparison import Comparison
from deathmatch.analysis.judging import NOTHING_RAN, Judgement, Part
from deathmatch.analysis.stats import NO_TRIAL, Interval
from deathmatch.data import sittings
from deathmatch.plan import validation_errors
from deathmatch.plan.spec import Many, Spec
from deathmatch.quantities.quantity import RATE, Kind, Points

FILE = published.FOLDER / "findings.toml"
REFERENCE = "reference"
"""The dataset that others are compared with."""
HOLDS, FAILS, OPEN, NOT_MEASURED = "yes", "no", "could not be told", "not measured"
STANDINGS = (HOLDS, FAILS, OPEN, NOT_MEASURED)


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

    `where`: the rate, the duration and the number of trials. `absent`: why there is no number; ""
    otherwise.
    """

    comparison: Comparison
    part: Part
    judgement: Judgement
    where: str
    absent: str

    @property
    def what(self) -> str:
        """The comparison in a few words."""
        return self.comparison.what

    @property
    def _is_count(self) -> bool:
        return len(self.part.sides) == 1 and self.comparison.quantity.kind == Kind.COUNT

    @cached_property
    def interval(self) -> Interval:
        """The mean over trials with Student's interval, or the range of the trials for counts.

        Both ends are finite or absent.
        """
        known = self.judgement.interval if self._is_count else _effect(self.part)
        finite = None not in (known.low, known.high) and math.isfinite(known.high - known.low)
        return known if finite else Interval(known.trials, known.estimate)

    @property
    def number(self) -> str:
        """The number with its interval and unit, as "0.82 [0.80, 0.84] times"; "" without one."""
        return self.text_of(self.interval)

    @property
    def words(self) -> str:
        """A ratio in words, as "about two thirds"; any other number with its unit alone."""
        value = self.interval.estimate
        if value and len(self.part.sides) == 2:
            return phrases.in_words(value)
        return self.text_of(Interval(self.interval.trials, value))

    def text_of(self, known: Interval) -> str:
        """Return an interval or a bound of the comparison, with its unit."""
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

    @property
    def why(self) -> str:
        """Why there is no number, or why it does not hold; "" if it holds."""
        verdict, comparison = self.judgement.verdict, self.comparison
        if self.absent or verdict == judging.REPLICATED:
            return self.absent
        bounds = {"more than": comparison.low, "less than": comparison.high}
        wanted = " and ".join(
            f"{words} {self.text_of(Interval(1, bound))}"
            for words, bound in bounds.items()
            if math.isfinite(bound)
        )
        if verdict == judging.NOT:
            return f"{self.number}, where {wanted} was expected"
        trials = self.interval.trials
        if trials < judging.MINIMUM_TRIALS:
            return f"{phrases.counted(trials, 'trial')}, where {judging.MINIMUM_TRIALS} are needed"
        return f"too noisy: {self.number}, where {wanted} is expected"


@dataclass(frozen=True)
class Result:
    """A finding as a dataset shows it.

    `fragile`: the corrections for testing all claims and findings together that it fails.
    """

    finding: Finding
    dataset: str
    shown: tuple[Shown, ...]
    fragile: str = ""

    @property
    def number(self) -> str:
        """The number of the first comparison; "" without one."""
        return self.shown[0].number

    @property
    def in_words(self) -> str:
        """The finding with its number in words, and its load."""
        known = self.shown[0]
        load = known.where.rpartition("n = ")[0].rstrip(", ")
        return ", ".join(filter(None, [f"{self.finding.sentence}: **{known.words}**", load]))

    @property
    def said(self) -> str:
        """The finding as the first sentence of a text: bold if it holds, else with its verdict."""
        if self.standing == HOLDS:
            return f"**{self.finding.sentence}**{self.fragile and f' ({self.fragile})'}."
        return f"{self.finding.sentence}? {self.verdict[0].upper()}{self.verdict[1:]}."

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
    def is_tested(self) -> bool:
        """Whether its standing is that of a test with enough trials."""
        trials = min(one.judgement.interval.trials for one in self.shown)
        return self.standing == FAILS or trials >= judging.MINIMUM_TRIALS

    @property
    def error(self) -> float | None:
        """The smallest level at which its standing would be the same; None if it is undecided."""
        words = {HOLDS: judging.REPLICATED, FAILS: judging.NOT}
        parts = tuple(one.part for one in self.shown)
        word = words.get(self.standing, judging.OPEN)
        return judging.error(Judgement(NO_TRIAL, word, parts=parts))

    @property
    def why(self) -> str:
        """The observation if it does not hold, or why it could not be told; "" if it holds."""
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
        text = f"{self.standing}: {self.why}" if self.why else self.standing
        return ", ".join(filter(None, [text, self.fragile]))


def load() -> tuple[Finding, ...]:
    """Return the findings in their order; UserError with file and key for a mistake."""
    raw = validation_errors.parse(FILE.read_bytes(), FILE.name)
    return validation_errors.validated(_File, raw, FILE.name).finding


def evaluate(dataset: str) -> list[Result]:
    """Return each finding as a dataset shows it, each tested by itself."""
    sittings.check_complete(dataset)
    return [_result(dataset, finding) for finding in load()]


def headline(results: Sequence[Result]) -> str:
    """Return "Nine findings: seven hold (two fragile), one does not, one could not be told"."""
    words = {HOLDS: ("holds", "hold"), FAILS: ("does not", "do not"),
             OPEN: ("could not be told",) * 2, NOT_MEASURED: ("was not measured",
                                                              "were not measured")}  # fmt: skip
    counts = {standing: sum(one.standing == standing for one in results) for standing in STANDINGS}
    weak = sum(one.standing == HOLDS and one.fragile != "" for one in results)
    parts = [
        f"{_WORDS[count]} {words[standing][count > 1]}"
        + (f" ({_WORDS[weak]} fragile)" if weak and standing == HOLDS else "")
        for standing, count in counts.items()
        if count
    ]
    return f"{_WORDS[len(results)].capitalize()} findings: {', '.join(parts)}"


_WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def _result(dataset: str, finding: Finding) -> Result:
    family = len(finding.comparisons)
    each = (shown(dataset, finding.experiment, one, family) for one in finding.comparisons)
    return Result(finding, dataset, tuple(each))


def shown(dataset: str, experiment: str, comparison: Comparison, family: int = 1) -> Shown:
    """Return one comparison of a dataset, judged as one of `family` comparisons."""
    part = comparing.part(dataset, experiment, comparison)
    if not all(part.sides):
        absent = comparing.why_absent(dataset, experiment, part)
        return Shown(comparison, part, NOTHING_RAN, "", absent)
    where = _where(dataset, experiment, comparison, part)
    return Shown(comparison, part, _judged(part, family), where, "")


def _judged(part: Part, family: int) -> Judgement:
    """Return the judgement on a part: by the ledger's test, or for a count by all its trials.

    Three or four trials would not decide the share of a count's trials against one half.
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


def _effect(part: Part) -> Interval:
    """Return the interval of a part as its test has it; the median's where that has no scale."""
    if not all(part.sides):
        return NO_TRIAL
    try:
        return judging.effect(part.sides, part.paired, trial_tests.ERROR)
    except ValueError:
        return judging.effect(part.sides, part.paired)


def _where(dataset: str, experiment: str, comparison: Comparison, part: Part) -> str:
    """Return the load of the compared points: "at 3 000 req/s, 5 s each, n = 3".

    A capacity has no load.
    """
    counts = sorted({len(side) for side in part.sides})
    n = f"n = {_range(counts)}"
    chosen = selecting.compared_variants(dataset, experiment, comparison)
    frames = [variant.points for variant, _ in chosen]
    if RATE not in frames[0].columns or comparison.quantity.points == Points.SEARCHES:
        return n
    rates = sorted({rate for frame in frames for rate in frame[RATE]})
    offered = "closed loop" if rates == [0] else f"at {_range(rates)} req/s"
    seconds = sorted({us / 1e6 for frame in frames for us in frame["duration_us"].drop_nulls()})
    return f"{offered}, {_range(seconds)} s each, {n}"


def _range(values: list[float]) -> str:
    ends = (values[0], values[-1])
    return phrases.span(*(phrases.number(end, 0 if end == int(end) else 1) for end in ends))


def _brackets(known: Interval) -> str:
    """Return an interval with three significant digits, or with all digits before the point."""
    size = abs(known.estimate or 0)
    return phrases.brackets(
        known, 0 if size >= 100 or size == int(size) else 1 if size >= 10 else 2
    )
