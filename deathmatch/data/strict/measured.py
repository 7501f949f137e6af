"""One trial as the rules look at it: its record, its raw logs and the rows made again from them."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from deathmatch.capacity_search import search
from deathmatch.data.kernel_samples import SCHEMA as SAMPLES
from deathmatch.data.strict import cpu
from deathmatch.errors import UserError
from deathmatch.plan import record as plan


@dataclass(frozen=True)
class Offered:
    """A rate that was offered: what the record says of it, for how long, and with which load."""

    point: dict
    duration_s: float
    load: dict

    @property
    def clients(self) -> list[dict]:
        """What each client did at it."""
        return plan.loads(self.point)


@dataclass(frozen=True)
class Measured:
    """One trial as it was recorded; what cannot be read is empty, and `problem` says why."""

    where: str
    """Its folder in the dataset, `data/<dataset>/<experiment>/<server>/<variant>/<n>`."""
    folder: Path
    """Where its raw logs are now."""
    record: dict
    """As in `trial.json`, with today's keys."""
    problem: UserError | None = None
    damaged: str = ""
    """Why its tables could not be made again, if they could not."""
    rows: list[dict] = field(default_factory=list, repr=False)
    """Its rows of `points`, made again from the raw logs, in the order of the record's points."""
    probe_rows: list[dict] = field(default_factory=list, repr=False)
    """Its rows of `probes`, likewise."""
    samples: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SAMPLES), repr=False)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Experiment, server, variant and number, as its folder has them."""
        return tuple(self.where.split("/")[-4:])

    @property
    def experiment(self) -> str:
        """The experiment that its folder names."""
        return self.key[0]

    @property
    def schema_version(self) -> int:
        """Which version of the record it has; 1 where it cannot be read."""
        version = self.record.get("schema_version", 1)
        return version if isinstance(version, int) else 1

    @property
    def spec(self) -> dict:
        """Everything that decided what was measured."""
        return self.record.get("spec", {})

    @property
    def factors(self) -> dict:
        """Its variant."""
        return self.spec.get("factors", {})

    @property
    def under_load(self) -> bool:
        """Whether a load generator took part."""
        return bool(self.spec.get("client"))

    @property
    def points(self) -> list[dict]:
        """What the record says of each offered rate, of a trial under load."""
        return self.record.get("points", []) if self.under_load else []

    @property
    def probes(self) -> list[dict]:
        """What the record says of each rate that a search offered."""
        return (self.record.get("search") or {}).get("probes", [])

    @property
    def checks(self) -> list[dict]:
        """What the conformance checks of the server gave."""
        return self.record.get("conformance") or []

    @property
    def sysctl(self) -> dict[str, dict[str, str]]:
        """The kernel settings of each side."""
        return self.record.get("sysctl") or {}

    @property
    def logs(self) -> list[str]:
        """The names of the raw logs of its points and probes."""
        return [client["log"] for offered in self.offers for client in offered.clients]

    @property
    def offers(self) -> list[Offered]:
        """What was offered at each of `points` and `probes`."""
        duration_s, load = self.spec.get("duration_s", 0), self.spec.get("load", {})
        return [Offered(point, duration_s, load) for point in self.points] + [
            Offered(probe, probe["duration_s"], search.load_of(probe["step"], load))
            for probe in self.probes
        ]

    @property
    def pairs(self) -> list[tuple[dict, dict]]:
        """Each of `points` with its row made again; none if that could not be done."""
        return list(zip(self.points, self.rows)) if len(self.points) == len(self.rows) else []

    @cached_property
    def shares(self) -> list[cpu.Shares]:
        """The shares of the CPU time at each rate; none of server and client on two machines."""
        if not len(self.samples) or self.record.get("separate"):
            return []
        return cpu.shares(self.samples, (self.record.get("machine") or {}).get("cpus") or 1)

    def log(self, name: str) -> str:
        """Return the text of one of its raw logs, empty if there is none."""
        file = self.folder / name
        return file.read_text(errors="replace") if file.is_file() else ""
