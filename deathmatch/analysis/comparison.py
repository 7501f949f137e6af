"""Comparisons of claims and findings: one variant or two, a quantity, and the claimed range."""

import math
from typing import Literal, Self

from pydantic import Field, model_validator

from deathmatch.plan.spec import Spec
from deathmatch.quantities.definitions import QUANTITIES
from deathmatch.quantities.quantity import Kind, Quantity

INFINITE = math.inf
Selector = dict[str, str | int | float | dict[str, str | int]]
"""Columns and their levels, which together select one variant or one of its points."""
Statistic = Literal[*QUANTITIES]


class Comparison(Spec):
    """One comparison: a / b, or a alone, lies between `low` and `high`.

    The head of data/published/claims.toml explains the keys.
    """

    what: str = ""
    a: Selector
    b: Selector | None = None
    statistic: Statistic | None = None
    rate: Literal["lowest", "highest"] | None = None
    least_s: int = Field(0, ge=0)
    low: float | int = -INFINITE
    high: float | int = INFINITE

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if unknown := [name for name in self.statistics if name not in QUANTITIES]:
            raise ValueError(f"{unknown[0] or 'no statistic'} is no quantity of this project")
        if not all("server" in side for side in self.sides):
            raise ValueError("a side names no server")
        if self.low >= self.high:
            raise ValueError("low is not below high")
        if self.b and self.quantity and self.quantity.kind == Kind.OUTCOME:
            raise ValueError(f"{self.statistic} has no ratio: it says whether something happened")
        return self

    @property
    def sides(self) -> list[Selector]:
        """The selectors of a, and of b if there is one."""
        return [self.a] if self.b is None else [self.a, self.b]

    @property
    def statistics(self) -> list[str]:
        """The name of the quantity of each side."""
        return [side.get("statistic", self.statistic) or "" for side in self.sides]

    @property
    def quantity(self) -> Quantity | None:
        """The quantity that is compared; None where the sides have different ones."""
        names = set(self.statistics)
        return QUANTITIES[names.pop()] if len(names) == 1 else None

    @property
    def paired(self) -> bool:
        """Whether both sides are of one experiment, so that they are compared within rounds."""
        return len({side.get("experiment") for side in self.sides}) == 1
