"""Rules about what measured: tools, machine, sources of the server, commit, version of the record.

MLPerf calls the like "system description"; SPEC's run rules ask that all of a result comes from one
configuration that a reader could have.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from deathmatch.builds import tool_differences
from deathmatch.checks.rule import Finding, Rules, whole
from deathmatch.data.strict.evidence import Evidence
from deathmatch.data.strict.measured import Measured
from deathmatch.data.strict.rule import AGAIN, DATA, DESIGN, readable
from deathmatch.hosts import hardware
from deathmatch.load import registry
from deathmatch.plan.record import MEASURED

ORIGIN = Rules("measure these trials again, or keep them in a dataset of their own", readable)


def differing(
    trials: Iterable[Measured], group: Callable[[Measured], object],
    value: Callable[[Measured], object], text: str,
) -> Iterator[Finding]:  # fmt: skip
    """Return a finding for each trial whose value is not that of most trials of its group.

    `text` is formatted with the trial's own value and the usual one. Of values that are equally
    frequent, the first counts.
    """
    groups: dict[object, dict[str, list[tuple[Measured, object]]]] = {}
    for trial in trials:
        own = value(trial)
        groups.setdefault(group(trial), {}).setdefault(repr(own), []).append((trial, own))
    for values in groups.values():
        usual = max(values.values(), key=len)
        for others in values.values():
            if others is not usual:
                yield from (
                    Finding(text.format(own, usual[0][1]), trial.where) for trial, own in others
                )


def _several(differences: Iterable[tuple[str, dict[str, str]]]) -> Iterator[Finding]:
    """Return a finding for each further value of a name, where a trial has it."""
    for name, places in differences:
        first, *others = places
        for value in others:
            yield Finding(f"{name} is {value}, and {first} elsewhere", places[value])


def _commit(trial: Measured) -> str:
    return (trial.record.get("machine") or {}).get("commit") or ""


@ORIGIN.add("DM-TOOLS", "reject", DATA, scope=whole)
def one_toolchain(evidence: Evidence) -> Iterator[Finding]:
    """All trials of an experiment were measured with one kernel and one build of its load
    generator, all of a server with one package or store path of each of its tools.
    """
    records = [(trial.where, trial.record) for trial in evidence.readable]
    return _several(tool_differences.differences(records))


@ORIGIN.add("DM-TOOLS-NAMED", "reject", DATA, AGAIN)
def tools_are_named(trial: Measured) -> Iterator[str]:
    """Each record names the kernel, the load generator and the server's tools that it was measured
    with.
    """
    tools = trial.record.get("tools", {})
    needed = {"kernel", "toolchain"}
    # Older records do not name a load generator that a server's build makes.
    client = trial.spec.get("client")
    if client and registry.client(client).built_by is None:
        needed.add(client)
    for tool in sorted(needed - tools.get("harness", {}).keys()):
        yield f"its harness names no {tool}"
    if trial.record["outcome"] in MEASURED and not tools.get("server"):
        yield "it names no tool of the server"


@ORIGIN.add("DM-MACHINE", "reject", DATA, scope=whole)
def one_machine(evidence: Evidence) -> Iterator[Finding]:
    """All trials were measured on one kind of machine: CPU, number of CPUs, memory, system."""
    records = [(trial.where, trial.record) for trial in evidence.readable]
    return _several(hardware.differences(records))


@ORIGIN.add("DM-MACHINE-NAMED", "reject", DATA, AGAIN)
def machine_is_named(trial: Measured) -> Iterator[str]:
    """Each record of a measured trial says on which machine, kernel and system."""
    machine = trial.record.get("machine") or {}
    keys = ("cpu", "cpus", "memory_bytes", "kernel", "os")
    lacking = [key for key in keys if not machine.get(key)]
    if lacking and trial.record["outcome"] in MEASURED:
        yield f"machine lacks {', '.join(lacking)}"


@ORIGIN.add(
    "DM-COMMIT", "reject", DATA,
    "commit, and measure again; or waive it in the dataset's file, with the reason",
)  # fmt: skip
def commit_is_clean(trial: Measured) -> Iterator[str]:
    """Each trial was measured by a commit of this project without uncommitted changes."""
    commit = _commit(trial)
    if trial.record["outcome"] not in MEASURED:
        return
    if commit.endswith("-dirty"):
        yield f"commit {commit}"
    elif not commit:
        reason = (trial.record.get("machine") or {}).get("commit_unknown")
        yield f"commit unknown: {reason}" if reason else "commit unknown"


@ORIGIN.add(
    "DM-COMMITS", "note", DATA, "say in the dataset's remark what changed between them",
    scope=whole,
)  # fmt: skip
def one_commit(evidence: Evidence) -> Iterator[Finding]:
    """One commit measured all trials."""
    commits = Counter(_commit(trial).removesuffix("-dirty") for trial in evidence.readable)
    del commits[""]
    if len(commits) > 1:
        counts = ", ".join(f"{commit} ({count})" for commit, count in commits.items())
        yield Finding(f"{len(commits)} commits, with their trials: {counts}", evidence.named)


@ORIGIN.add("DM-SCHEMA", "reject", DATA, "measure the older ones again", scope=whole)
def one_schema(evidence: Evidence) -> Iterator[Finding]:
    """All records have one version of their schema."""
    return differing(
        evidence.readable, lambda trial: "", lambda trial: trial.schema_version,
        "version {}, elsewhere {}",
    )  # fmt: skip


@ORIGIN.add("DM-SERVER", "reject", DESIGN, "measure all trials of this server again", scope=whole)
def one_version_of_a_server(evidence: Evidence) -> Iterator[Finding]:
    """All trials of a server ran the same sources and say the same version."""
    trials = [trial for trial in evidence.readable if trial.record["outcome"] in MEASURED]
    for what, value in (
        ("sources", lambda trial: trial.spec["server_sha256"]),
        ("version", lambda trial: trial.record["version"]),
    ):
        text = f"its {what} are {{!r}}, and {{!r}} in other trials"
        yield from differing(trials, lambda trial: trial.key[1], value, text)
