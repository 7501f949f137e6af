"""A trial: one fresh start of one variant of one server, swept over all rates of its experiment."""

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from deathmatch.load import registry
from deathmatch.plan.dataset import OPTIONS, ExperimentPlan, least_overload_s
from deathmatch.plan.experiment import Experiment
from deathmatch.plan.server import Server, fingerprint
from deathmatch.plan.spec import Level

# The factor that every experiment has: which of a server's own configurations runs.
CONFIGURATION = "configuration"
# A search for a capacity takes the deepest level of this factor.
BACKLOG = "backlog"


class Variant(BaseModel):
    """A server's settings in an experiment: the level of each of its factors, in their order."""

    model_config = ConfigDict(frozen=True, strict=True)

    factors: dict[str, Level]

    @cached_property
    def name(self) -> str:
        """The factors as one folder name: `backlog=128,schedulers=one`."""
        return ",".join(f"{name}={level}" for name, level in self.factors.items()) or "default"

    def __str__(self) -> str:
        """Return its name."""
        return self.name

    def __eq__(self, other: object) -> bool:
        """Compare the factors, their order included, as the name has it."""
        return isinstance(other, Variant) and self.name == other.name

    def __hash__(self) -> int:
        """Hash the name."""
        return hash(self.name)


class Trial(BaseModel):
    """A cell of the matrix. Its path is its name: trials with the same path are equal."""

    model_config = ConfigDict(frozen=True, strict=True)

    dataset: str
    experiment: Experiment
    plan: ExperimentPlan
    server: Server
    variant: Variant
    n: int

    @cached_property
    def folder(self) -> str:
        """The trial's folder, relative to the project's root, as text."""
        cell = f"{self.experiment.name}/{self.server.name}/{self.variant.name}"
        return f"data/{self.dataset}/{cell}/{self.n}"

    @cached_property
    def path(self) -> Path:
        """The trial's folder, relative to the project's root."""
        return Path(self.folder)

    def __eq__(self, other: object) -> bool:
        """Compare the folders."""
        return isinstance(other, Trial) and self.folder == other.folder

    def __hash__(self) -> int:
        """Hash the folder."""
        return hash(self.folder)

    @property
    def configuration(self) -> str | None:
        """The name of the server's configuration that runs; None where it has none."""
        return self.variant.factors.get(CONFIGURATION)

    @property
    def load_generator(self) -> str | None:
        """The load generator that offers the load; None where there is none."""
        return self.variant.factors.get(registry.FACTOR, self.experiment.client)

    @property
    def placeholders(self) -> dict[str, Level]:
        """What the matrix fills into the server's command.

        They are its factors, what its configuration sets, {experiment} and {configuration},
        "default" where there is none.
        """
        own = {}
        if self.configuration is not None:
            own = self.server.configurations[self.configuration].placeholders
        always = {"experiment": self.experiment.name, CONFIGURATION: "default"}
        return always | self.variant.factors | own

    @property
    def warm_up_s(self) -> float:
        """For how many seconds the server is asked before it is timed.

        The longer of what the server needs and what the dataset plans for the experiment.
        """
        return max(self.plan.warm_up_s or 0, self.server.warm_up_s)

    @property
    def duration_s(self) -> float | None:
        """For how long each rate is offered: the time of one of its levels, else the dataset's.

        None where no rate is offered.
        """
        for name, level in self.variant.factors.items():
            factor = self.experiment.factors.get(name)
            if factor and (own := (factor.durations_s or {}).get(level)):
                return own
        return self.plan.duration_s

    @property
    def search(self) -> dict[str, Any] | None:
        """The settings of the search for the server's capacity; None if there is no search.

        The dataset's keys but `servers`, and `backlog`: the deepest that the server and the
        experiment know, if that is a factor. There is none for a variant with another backlog or
        kernel setting than the default: it would be the same again, or in another queue. With an
        overload, which differs by them, every variant of the light client has one.
        """
        plan = self.plan.search
        if plan is None or (plan.servers and self.server.name not in plan.servers):
            return None
        overloads = bool(plan.overload_shares)
        if overloads and self.load_generator != registry.LIGHT:
            return None
        backlogs: tuple[Level, ...] = ()
        for name, level in self.variant.factors.items():
            factor = self.experiment.factors.get(name)
            if factor is None or (name != BACKLOG and factor.sysctl is None):
                continue
            able = factor.levels if factor.of_harness else self.server.factors[name]
            known = able or factor.levels
            usual = factor.default if factor.default in known else known[0]
            if level != usual and not overloads:
                return None
            if name == BACKLOG:
                backlogs = known
        hidden = {"servers", "overload_shares", "overload_s"}
        hidden |= {key for key in ("most_s", "cost_s") if getattr(plan, key) is None}
        asked = plan.model_dump(exclude=hidden)
        if overloads:
            overload_s = plan.overload_s or least_overload_s(self._load)
            asked |= {"overload_shares": plan.overload_shares, "overload_s": overload_s}
        return asked | ({BACKLOG: max(backlogs)} if backlogs else {})

    def testbed(self, default: str) -> str:
        """Return the testbed on which it runs: that of one of its levels, else the default one."""
        for name, level in self.variant.factors.items():
            factor = self.experiment.factors.get(name)
            if factor and (own := (factor.testbeds or {}).get(level)):
                return own
        return default

    @property
    def _load(self) -> dict[str, Any]:
        """What the client asks for, as experiment, variant, dataset and server have it."""
        load = self.experiment.load_as_written | {
            factor.load: self.variant.factors[name]
            for name, factor in self.experiment.factors.items()
            if factor.load
        }
        if self.server.text_messages and "message_bytes" in load:
            load = load | {"text": True}
        return load if self.plan.step_s is None else load | {"step_s": self.plan.step_s}

    def spec(self) -> dict[str, Any]:
        """Return everything that decides what the trial measures, ready for JSON.

        Keys: factors, sysctl (what the factors set in the server's namespace), client (or
        measures, where there is none), load, conformance, server_sha256, the keys that
        `Experiment.steps` names, churn and system_calls_rate_rps if the experiment has them, and
        search if there is one.
        Snakemake measures a trial again when this changes.
        """
        experiment, factors = self.experiment, self.variant.factors
        if experiment.client is not None:
            measured = {"client": self.load_generator}
        else:
            measured = {"measures": experiment.measures}
        if experiment.system_calls_rate_rps is not None:
            measured["system_calls_rate_rps"] = experiment.system_calls_rate_rps
        if experiment.churn is not None:
            measured["churn"] = experiment.churn.model_dump()
        if self.search is not None:
            measured["search"] = self.search
        plan = self.plan.as_written
        if self.duration_s is not None:
            plan = plan | {"duration_s": self.duration_s}
        return {
            "factors": factors,
            "sysctl": {
                factor.sysctl: factors[name]
                for name, factor in experiment.factors.items()
                if factor.sysctl
            },
            "load": self._load,
            "conformance": [
                check.as_written
                for check in experiment.conformance or ()
                if (check.when or {}).items() <= factors.items()
            ],
            **{key: plan[key] for key in (*experiment.steps, *OPTIONS) if key in plan},
            **measured,
            "server_sha256": fingerprint(self.server),
        }

    def spec_text(self) -> str:
        """Return `spec` as canonical JSON."""
        return json.dumps(self.spec(), sort_keys=True)
