"""How old the software is that a claim is decided on.

In: a claim on the releases that stand for "then" or for "now". Out: the releases that its rule
compares, with their years, and whether all of them are of the source's time.
"""

from dataclasses import dataclass

from deathmatch.analysis import published, selecting
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

        Of a release that stands on a later runtime, "Cowboy 2.8.0 (2020, on a runtime of 2022)".
        """
        if self.year is None:
            return f"{self.name} (no date)"
        if self.series == self.year:
            return f"{self.name} ({self.year})"
        if self.series > self.year:
            return f"{self.name} ({self.year}, on a runtime of {self.series})"
        return f"{self.name} (series of {self.series}, released {self.year})"


def ages(dataset: str, claim: dict) -> tuple[Age, ...]:
    """Return the releases that a claim's rule compares; instruments are none, nor what is gone."""
    found = []
    for name in _servers(dataset, claim):
        if not files.path_of("server", name).is_file():
            continue
        server = files.server(name)
        release = server.release
        if release and not server.instrument:
            found.append(Age(release.name, release.series_year or release.year, release.year))
    return tuple(dict.fromkeys(found))


def of_the_time(claim: dict, compared: tuple[Age, ...]) -> bool:
    """Return whether all releases are within WITHIN_YEARS of the claim's source; False of none."""
    last = int(claim["source"][-4:]) + WITHIN_YEARS
    return bool(compared) and all(age.series is not None and age.series <= last for age in compared)


def _servers(dataset: str, claim: dict) -> list[str]:
    """Return the servers that a rule names, and those that it ranges over."""
    rule = claim["rule"]
    named = [selector["server"] for selector in published.selectors(rule) if "server" in selector]
    for part in (rule, *rule.get("rules", [])):
        named += selecting.ranged_servers(dataset, claim["experiment"], part)
    return list(dict.fromkeys(named))
