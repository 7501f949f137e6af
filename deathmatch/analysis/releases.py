"""The age of the releases that a claim compares."""

from collections.abc import Iterable
from dataclasses import dataclass

from deathmatch.analysis.comparison import Comparison
from deathmatch.plan import files

WITHIN_YEARS = 3
"""Software is of a source's time if its series began no later than this after the source."""


@dataclass(frozen=True)
class Age:
    """A release that a rule compares: `series` is the year when its series began, `year` its own.

    Both are None where no registry holds a date.
    """

    name: str
    series: int | None
    year: int | None

    @property
    def phrase(self) -> str:
        """Return "Tornado 0.2 (2010)" or "OTP 25.2.3 (series of 2022, released 2023)".

        A release on a later runtime is "Cowboy 2.8.0 (2020, on a runtime of 2022)".
        """
        if self.year is None:
            return f"{self.name} (no date)"
        if self.series == self.year:
            return f"{self.name} ({self.year})"
        if self.series > self.year:
            return f"{self.name} ({self.year}, on a runtime of {self.series})"
        return f"{self.name} (series of {self.series}, released {self.year})"


def ages(compared: Iterable[Comparison]) -> tuple[Age, ...]:
    """Return the releases that are compared, without instruments."""
    found = []
    for name in dict.fromkeys(side["server"] for one in compared for side in one.sides):
        server = files.server(str(name))
        release = server.release
        if release and not server.instrument:
            found.append(Age(release.name, release.series_year or release.year, release.year))
    return tuple(dict.fromkeys(found))


def of_the_time(source: str, compared: tuple[Age, ...]) -> bool:
    """Return whether all releases are within WITHIN_YEARS of a source; False of none."""
    last = int(source[-4:]) + WITHIN_YEARS
    return bool(compared) and all(age.series is not None and age.series <= last for age in compared)
