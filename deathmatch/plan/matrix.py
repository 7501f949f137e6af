"""The matrix: which trials a dataset consists of, in which order.

A trial is one fresh start of one variant of one server, swept over all rates of the
experiment; its path under `data/` is its name.
"""

import hashlib
import itertools
import json
import random
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.plan import config

Level = str | int

# The factor that every experiment has: which of a server's own configurations runs.
CONFIGURATION = "configuration"

# What a dataset may say of an experiment's trials beyond what it must (`steps`).
OPTIONS = ("warm_up_rate_rps", "warm_up_s", "cool_down_s", "keep_events")


@dataclass(frozen=True)
class Trial:
    """One cell of the matrix. `factors` holds (name, level) pairs in the experiment's order."""

    dataset: str
    experiment: str
    server: str
    factors: tuple[tuple[str, Level], ...]
    n: int

    @cached_property
    def variant(self) -> str:
        """The factors as one folder name: `backlog=128,schedulers=one`."""
        return ",".join(f"{name}={level}" for name, level in self.factors) or "default"

    @cached_property
    def path(self) -> Path:
        """The trial's folder, relative to the project's root."""
        return Path("data", self.dataset, self.experiment, self.server, self.variant, str(self.n))


def trials(
    dataset: str, servers: list[str] | None = None, experiments: list[str] | None = None
) -> list[Trial]:
    """Return the dataset's trials in the order in which they run.

    Each repetition visits every variant once, in an order drawn from the dataset's seed, so
    that drift of the machine falls on all variants alike. `servers` and `experiments` narrow
    the choice. Raises UserError for names, factors or levels that do not exist.
    """
    plan = config.load("dataset", dataset)
    for kind, chosen in (("server", servers), ("experiment", experiments)):
        for name in chosen or []:
            config.load(kind, name)
    cells = [
        (experiment, server, factors)
        for experiment in plan["experiments"]
        if experiments is None or experiment in experiments
        for server, factors in _variants(dataset, experiment, plan["experiments"][experiment])
        if servers is None or server in servers
    ]
    ordered = []
    rounds = {
        name: part.get("trials", plan["trials"]) for name, part in plan["experiments"].items()
    }
    for n in range(1, max(rounds.values()) + 1):
        block = [cell for cell in cells if n <= rounds[cell[0]]]
        random.Random(f"{plan['seed']}/{n}").shuffle(block)
        ordered += [Trial(dataset, e, s, f, n) for e, s, f in block]
    return ordered


def serving(experiment: str, slow: bool = True) -> list[str]:
    """Return the servers that serve the experiment and can run, in alphabetical order.

    With `slow` false, without those whose build takes minutes.
    """
    loaded = {name: config.load("server", name) for name in config.names("server")}
    return [
        name
        for name, server in loaded.items()
        if experiment in server["experiments"]
        and "not_run" not in server
        and (slow or not server.get("slow_build"))
    ]


def _variants(dataset: str, experiment: str, part: dict) -> list[tuple[str, tuple]]:
    _known(dataset, ["experiments", experiment], "experiment", experiment)
    factors = config.load("experiment", experiment)["factors"]
    candidates, usual = serving(experiment), serving(experiment, slow=False)
    for key in steps(experiment):
        if key not in part:
            raise _mistake(
                dataset, ["experiments", experiment, key], "this key is missing",
                f"the client of {experiment!r} needs it",
            )  # fmt: skip
    found = {}
    for index, block in enumerate(part["grids"]):
        where = ["experiments", experiment, "grids", index]
        for server in block.get("omit", []):
            _known(dataset, [*where, "omit"], "server", server)
        chosen = [
            server for server in block.get("servers", usual) if server not in block.get("omit", [])
        ]
        levels = {k: v for k, v in block.items() if k not in ("servers", "omit")}
        for name in levels:
            known = _levels(factors, experiment, name, chosen)
            if levels[name] == "all":
                levels[name] = known
            if not known:
                raise _mistake(
                    dataset, [*where, name], f"experiment {experiment!r} has no factor {name!r}",
                    f"its factors: {', '.join([*factors, CONFIGURATION])}",
                )  # fmt: skip
            for level in levels[name]:
                if level not in known:
                    raise _mistake(
                        dataset, [*where, name], f"factor {name!r} has no level {level!r}",
                        f"its levels: {', '.join(map(str, known))}",
                    )  # fmt: skip
        for server in chosen:
            if server not in candidates:
                _known(dataset, [*where, "servers"], "server", server)
                raise _mistake(
                    dataset, [*where, "servers"], f"{server!r} does not serve {experiment!r}",
                    f"add it to experiments in servers/{server}/server.toml, or leave it out here",
                )  # fmt: skip
            for combination in _product(factors, levels, server, experiment):
                found[server, combination] = None
    return list(found)


def steps(experiment: str) -> list[str]:
    """Return the keys of a dataset that say what one trial of the experiment goes through."""
    client = config.load("experiment", experiment)["client"]
    return ["messages"] if client == "memory" else ["rates_rps", "duration_s"]


def _levels(factors: dict, experiment: str, name: str, servers: list[str]) -> list[Level]:
    if name == CONFIGURATION:
        every = (configurations(server, experiment) for server in servers)
        return sorted({configuration for found in every for configuration in found})
    return factors.get(name, {}).get("levels", [])


def configurations(server: str, experiment: str) -> list[str]:
    """Return the names of the server's configurations in this experiment, the usual one first."""
    named = config.load("server", server).get("configurations", {})
    return [
        name
        for name, configuration in named.items()
        if experiment in configuration.get("experiments", [experiment])
    ]


def placeholders(trial: Trial) -> dict[str, Level]:
    """Return what the matrix fills into a server's command: its factors, what its
    configuration sets, {experiment} and {configuration}: "default" where there is none."""
    factors = dict(trial.factors)
    configuration = (
        config.load("server", trial.server)
        .get("configurations", {})
        .get(factors.get(CONFIGURATION), {})
    )
    own = {
        key: value for key, value in configuration.items() if key not in ("about", "experiments")
    }
    return {"experiment": trial.experiment, CONFIGURATION: "default"} | factors | own


def _product(factors: dict, levels: dict, server: str, experiment: str) -> list[tuple]:
    """Return the factor combinations of one block for one server.

    A factor the server lacks is left out; a factor the block does not name takes its default.
    """
    able = config.load("server", server).get("factors", {})
    axes = []
    if ways := configurations(server, experiment):
        axes.append(
            [(CONFIGURATION, way) for way in levels.get(CONFIGURATION, ways[:1]) if way in ways]
        )
    for name, factor in factors.items():
        # What the harness sets itself, every server has.
        if config.HARNESS & factor.keys():
            axes.append([(name, level) for level in levels.get(name, [factor["default"]])])
        elif name in able:
            known = able[name] or factor["levels"]
            default = factor["default"] if factor["default"] in known else known[0]
            wanted = levels.get(name, [default])
            axes.append([(name, level) for level in wanted if level in known])
    return list(itertools.product(*axes))


def _known(dataset: str, key: list, kind: str, name: str) -> None:
    if name not in config.names(kind):
        known = ", ".join(config.names(kind))
        raise _mistake(dataset, key, f"there is no {kind} {name!r}", f"known: {known}")


def _mistake(dataset: str, key: list, what: str, remedy: str) -> UserError:
    path = config.path_of("dataset", dataset)
    line = config.line_of(path.read_text(), key)
    return UserError(what, f"{path.relative_to(config.ROOT)}, line {line}, key {key[-1]}", remedy)


def spec(trial: Trial) -> dict:
    """Return everything that decides what a trial measures, ready for JSON.

    Keys: factors, sysctl (what the factors set in the server's namespace), client, load,
    conformance, server_sha256, the keys that `steps` names, and system_calls_rate_rps if the
    experiment has one. Snakemake measures a trial again when this changes.
    """
    plan = config.load("dataset", trial.dataset)["experiments"][trial.experiment]
    experiment = config.load("experiment", trial.experiment)
    factors = dict(trial.factors)
    return {
        "factors": factors,
        "sysctl": {
            factor["sysctl"]: factors[name]
            for name, factor in experiment["factors"].items()
            if "sysctl" in factor
        },
        "client": experiment["client"],
        "load": experiment.get("load", {}),
        "conformance": [
            check
            for check in experiment.get("conformance", [])
            if check.get("when", {}).items() <= factors.items()
        ],
        **{key: plan[key] for key in (*steps(trial.experiment), *OPTIONS) if key in plan},
        **{key: experiment[key] for key in ("system_calls_rate_rps",) if key in experiment},
        "server_sha256": fingerprint(trial.server),
    }


def testbed(trial: Trial, usual: str) -> str:
    """Return the testbed on which the trial runs: that of one of its levels, else the usual one."""
    about = config.load("experiment", trial.experiment)["factors"]
    named = [about[name].get("testbeds", {}).get(level)
             for name, level in trial.factors if name in about]  # fmt: skip
    return next(filter(None, named), usual)


def spec_text(trial: Trial) -> str:
    """Return `spec` as canonical JSON."""
    return json.dumps(spec(trial), sort_keys=True)


def sources(server: str) -> list[str]:
    """Return the files that the server is made from, relative to the project's root, sorted.

    They are those of its folder and of what `sources` of its server.toml names.
    """
    others = config.load("server", server).get("sources", [])
    folders = [config.path_of("server", server).parent, *(config.ROOT / path for path in others)]
    return sorted(
        str(path.relative_to(config.ROOT))
        for folder in folders
        for path in [folder, *folder.rglob("*")]
        if path.is_file() and "__pycache__" not in path.parts
    )


@cache
def fingerprint(server: str) -> str:
    """Return the SHA-256 of the names and contents of the server's sources, in hexadecimal."""
    digest = hashlib.sha256()
    for name in sources(server):
        content = (config.ROOT / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def find(path: str | Path) -> Trial:
    """Return the trial that a path such as `data/quick/backlog/null/backlog=5/1` names.

    No server but its own is read, so that another's broken file does not stop it. Raises
    UserError if there is no such dataset, experiment, server, factor or level.
    """
    parts = Path(path).parts
    if len(parts) != 6 or parts[0] != "data" or not parts[5].isdecimal():
        raise UserError(
            f"{path} names no trial",
            remedy="a trial is data/<dataset>/<experiment>/<server>/<variant>/<n>",
        )
    _, dataset, experiment, server, variant, n = parts
    config.load("server", server)
    known = {name: about["levels"] for name, about in
             config.load("experiment", experiment)["factors"].items()}  # fmt: skip
    known[CONFIGURATION] = configurations(server, experiment)
    if experiment not in config.load("dataset", dataset)["experiments"]:
        raise UserError(
            f"dataset {dataset!r} has no experiment {experiment!r}",
            remedy="`snakemake -n` lists what it has",
        )
    factors = []
    for pair in [] if variant == "default" else variant.split(","):
        name, _, text = pair.partition("=")
        level = next((level for level in known.get(name, []) if str(level) == text), None)
        if level is None:
            raise UserError(
                f"dataset {dataset!r} has no trial {'/'.join(parts[2:])}: no {pair!r}",
                remedy=f"factors of {experiment!r} for this server: {', '.join(known)}",
            )
        factors.append((name, level))
    about = config.load("experiment", experiment)["factors"]
    named = [name for name, _ in _product(about, {}, server, experiment)[0]]
    if [name for name, _ in factors] != named:
        raise UserError(
            f"{path} names no trial", remedy=f"its factors, in this order: {', '.join(named)}"
        )
    return Trial(dataset, experiment, server, tuple(factors), int(n))
