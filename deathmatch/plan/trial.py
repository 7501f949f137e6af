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

# The factor that every experiment has: the configuration of the server that runs.
CONFIGURATION = "configuration"
# A search for a capacity takes the deepest level of this factor.
BACKLOG = "backlog"


class Variant(BaseModel):
    """A server's settings in an experiment: the level of each of its factors, in their order."""

    model_config = ConfigDict(frozen=True, strict=True)

    factors: dict[str, Level]

    @cached_property
    def name(self) -> str:
        """The name of its folder: `backlog=128,schedulers=one`."""
        return ",".join(f"{name}={level}" for name, level in self.factors.items()) or "default"

    def __str__(self) -> str:
        """Return its name."""
        return self.name

    def __eq__(self, other: object) -> bool:
        """Compare the names: the factors, and their order."""
        return isinstance(other, Variant) and self.name == other.name

    def __hash__(self) -> int:
        """Hash the name."""
        return hash(self.name)


class Trial(BaseModel):
    """A cell of the matrix. Trials with the same path are equal."""

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
        """The name of the server's configuration that runs; None if it has none."""
        return self.variant.factors.get(CONFIGURATION)

    @property
    def load_generator(self) -> str | None:
        """The load generator; None if there is none."""
        return self.variant.factors.get(registry.FACTOR, self.experiment.client)

    @property
    def placeholders(self) -> dict[str, Level]:
        """The placeholders of the server's command and their values.

        They are its factors, the keys of its configuration, {experiment} and {configuration}, which
        is "default" if there is none.
        """
        own = {}
        if self.configuration is not None:
            own = self.server.configurations[self.configuration].placeholders
        always = {"experiment": self.experiment.name, CONFIGURATION: "default"}
        return always | self.variant.factors | own

    @property
    def warm_up_s(self) -> float:
        """The warm-up in seconds: the server's or the dataset's, whichever is longer."""
        return max(self.plan.warm_up_s or 0, self.server.warm_up_s)

    @property
    def duration_s(self) -> float | None:
        """How long each rate is offered, in seconds: a level's own time, or the dataset's.

        None if no rate is offered.
        """
        of_levels = (
            (self.experiment.factors[name].durations_s or {}).get(level)
            for name, level in self.variant.factors.items()
            if name in self.experiment.factors
        )
        return next(filter(None, of_levels), self.plan.duration_s)

    @property
    def search(self) -> dict[str, Any] | None:
        """The settings of the search for the server's capacity; None if there is no search.

        They are the dataset's keys without `servers`, and, if it is a factor, `backlog`: the
        deepest level of server and experiment. A variant with a backlog or kernel setting other
        than the default is not searched, as the capacity would be the same, or that of another
        queue. With an overload, which depends on them, every variant of the light client is
        searched.
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

    @property
    def _load(self) -> dict[str, Any]:
        """The load, as experiment, variant, dataset and server define it."""
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

        Keys: factors, sysctl (set by factors in the server's namespace), client (or measures),
        load, conformance, server_sha256, those of `Experiment.steps` and OPTIONS, churn and
        system_calls_rate_rps if the experiment has them, and search if there is one. Snakemake
        measures a trial again when it changes.
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
