"""A statistic of trials, with what is known of each value: all of it, or a bound."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from deathmatch.quantities.quantity import Kind


@dataclass(frozen=True)
class Values:
    """A statistic by block, the number of a trial.

    `at_least`: blocks whose value may be more, as the highest reply rate of a trial that answered
    it in full; `below`: what it is below for those of them of which that is known, as the next rate
    that was offered; `at_most`: blocks whose value may be less, as a quotient by such a rate.
    `kind`: what the values can be. `step`: the last digit of what was recorded, in their unit, as
    the tenth of a millisecond in which httperf prints times; 0 if they have more digits than
    matter. `hidden`: there are trials, and the client was the limit in all of them.
    """

    by_block: Mapping[int, float] = field(default_factory=dict)
    at_least: frozenset[int] = frozenset()
    below: Mapping[int, float] = field(default_factory=dict)
    at_most: frozenset[int] = frozenset()
    kind: Kind = Kind.POSITIVE
    step: float = 0
    hidden: bool = False

    def __len__(self) -> int:
        """Return the number of trials with a value."""
        return len(self.by_block)

    @property
    def all(self) -> list[float]:
        """The values in the order of their blocks in the data."""
        return list(self.by_block.values())

    @property
    def blocks(self) -> set[int]:
        """The blocks that have a value."""
        return set(self.by_block)

    @property
    def open_ended(self) -> frozenset[int]:
        """The blocks whose value may be more by any amount."""
        return self.at_least - self.below.keys()

    @property
    def unbounded(self) -> bool:
        """Whether some value may be more by any amount."""
        return bool(self.open_ended)

    @property
    def is_exact(self) -> bool:
        """Whether every value is known itself, and not only by a bound."""
        return not self.at_least and not self.at_most

    @property
    def highest(self) -> "Values":
        """The highest values that these may be, where bounds are known."""
        return replace(self, by_block={**self.by_block, **self.below}, below={})

    def within(self, blocks: set[int]) -> "Values":
        """Return what is known of these blocks."""
        return replace(
            self,
            by_block={n: value for n, value in self.by_block.items() if n in blocks},
            at_least=self.at_least & blocks,
            below={n: bound for n, bound in self.below.items() if n in blocks},
            at_most=self.at_most & blocks,
        )

    def over(self, below: "Values") -> "Values":
        """Return the quotients by another statistic, of blocks that both have; not by 0."""
        shared = sorted(n for n in self.blocks & below.blocks if below.by_block[n])
        bounded = [n for n in shared if n in self.below and n not in below.at_most]
        return Values(
            {n: self.by_block[n] / below.by_block[n] for n in shared},
            at_least=(self.at_least | below.at_most).intersection(shared),
            below={n: self.below[n] / below.by_block[n] for n in bounded},
            at_most=(self.at_most | below.at_least).intersection(shared),
            kind=Kind.COUNT if Kind.COUNT in (self.kind, below.kind) else Kind.POSITIVE,
            hidden=self.hidden or below.hidden,
        )


def in_shared_blocks(sides: Sequence[Values]) -> list[Values]:
    """Return the sides in the blocks that all with a value have; unchanged if they share none."""
    known = [side.blocks for side in sides if side]
    shared = set.intersection(*known) if known else set()
    return [side.within(shared) for side in sides] if shared else list(sides)
