"""Check that the trials of an experiment were, and would be, measured with the same tools."""

from collections.abc import Iterable, Iterator

from deathmatch.builds import toolchain
from deathmatch.builds.server_build import RECORD
from deathmatch.builds.server_commands import build_dir, tools
from deathmatch.errors import UserError
from deathmatch.hosts import hardware
from deathmatch.plan.server import Server

# Tools of the harness that may differ within a dataset: they neither serve nor offer load. The
# kernel belongs to the machine (`hosts.hardware`), and each round may have another machine.
FREE = {"python", "snakemake", "kernel"}
# These must be the same in the whole dataset; the other tools of the harness, such as the load
# generators, in an experiment, within which numbers are compared.
WHOLE = {"toolchain", "flake.lock"}


def entry(
    where: str, experiment: str, n: int, server: str, harness: dict, tools: dict,
    machine: dict | None,
) -> tuple[str, dict]:  # fmt: skip
    """Return the record of a trial that would be measured now, as `differences` takes it.

    `where` names what would measure it; `harness`, `tools` and `machine` are as in `trial.json`.
    """
    both = {"harness": harness, "server": tools}
    trial = {"experiment": experiment, "n": n, "server": server, "tools": both}
    return where, trial | {"machine": machine}


def differences(records: Iterable[tuple[str, dict]]) -> Iterator[tuple[str, dict[str, str]]]:
    """Return each tool in which the records differ, with {identity: where it was first seen}.

    A record is (where, trial), the latter as in `trial.json`, of which `experiment`, `server` and
    `tools` are read. Tools of the harness other than WHOLE are compared among the trials of an
    experiment, those of a server among its trials.
    """
    identities: dict[tuple[str, str], dict[str, str]] = {}
    for where, trial in records:
        tools, experiment = trial.get("tools", {}), trial.get("experiment", "")
        own = {
            (tool, "" if tool in WHOLE else experiment): identity
            for tool, identity in tools.get("harness", {}).items()
            if tool not in FREE
        }
        for tool, identity in tools.get("server", {}).items():
            own[f"{tool} of servers/{trial['server']}", ""] = identity
        for key, identity in own.items():
            identities.setdefault(key, {}).setdefault(identity, where)
    return ((tool, places) for (tool, _), places in identities.items() if len(places) > 1)


def check(dataset: str, records: Iterable[tuple[str, dict]]) -> None:
    """Raise UserError if the records, as `differences` takes them, have two toolchains."""
    for tool, places in differences(records):
        server = tool.partition(" of servers/")[2]
        stale = f"data/{dataset}/*/{server}" if server else f"data/{dataset}"
        if not server and tool not in WHOLE:
            measured = [place for place in places.values() if place.startswith("data/")]
            stale = measured[0].rsplit("/", 3)[0] if measured else stale
        raise mixed(
            dataset, "toolchains", tool, places,
            "An experiment has one toolchain. Either continue with the first one;\n"
            f"  or measure those trials again: rm -r {stale}\n"
            f"  or keep both: cp config/datasets/{dataset}.toml config/datasets/{dataset}-2.toml, "
            f"and run snakemake --config dataset={dataset}-2",
        )  # fmt: skip


def mixed(dataset: str, kinds: str, name: str, places: dict[str, str], remedy: str) -> UserError:
    """Return the error that a dataset would have two identities of a thing.

    `places` maps each identity to where it was first seen.
    """
    (first, where), (second, elsewhere), *_ = places.items()
    return UserError(
        f"two {kinds} would be mixed: {name} is\n"
        f"    {first}   ({where})\n    {second}   ({elsewhere})",
        where=f"data/{dataset}",
        remedy=remedy,
    )


def on_this_machine(trials: Iterable[tuple[str, int, Server]]) -> list[tuple[str, dict]]:
    """Return the record of each trial, measured on this machine now, as `check` takes them.

    `trials` has the experiment's name, the round and the server. The tools of a server that is not
    built yet are left out.
    """
    trials = list(trials)
    servers = {server.name: server for *_, server in trials}
    own = {
        name: tools(server) if (build_dir(name) / RECORD).exists() else {}
        for name, server in servers.items()
    }
    harness = toolchain.harness() if trials else {}
    machine = hardware.describe() if trials else None
    return [
        entry("this machine now", experiment, n, server.name, harness, own[server.name], machine)
        for experiment, n, server in trials
    ]
