"""Why a choice of servers and experiments leaves nothing of a dataset to measure."""

from collections.abc import Collection

from deathmatch.errors import UserError
from deathmatch.plan import files


def reason(
    dataset: str, servers: Collection[str] | None, experiments: Collection[str] | None
) -> UserError:
    """Return the error for a choice that leaves no trial; None chooses all."""
    held = sorted(files.dataset(dataset).experiments)
    where, remedy = f"dataset {dataset!r}", f"its experiments: {', '.join(held)}"
    for key, names in (("servers", servers), ("experiments", experiments)):
        if names is not None and not names:
            return UserError(f"nothing to measure: {key}= names none", where, f"leave out {key}=")
    if not held:
        file = files.path_of("dataset", dataset).name
        return UserError("it has no experiment", where, f"add one to config/datasets/{file}")
    asked = [name for name in held if experiments is None or name in experiments]
    if not asked:
        what = f"nothing to measure: it does not have {_or(experiments or ())}"
        return UserError(what, where, remedy)
    if servers is None:
        what = f"nothing to measure: no server that can run is of a grid of {_or(asked)}"
        return UserError(what, where, "see `grids` in its file")
    why = "\n".join(f"    {unmeasured(name, asked)}" for name in servers)
    return UserError(f"nothing to measure:\n{why}", where, remedy)


def unmeasured(name: str, experiments: Collection[str]) -> str:
    """Return in words why a server that is named is measured in none of the experiments."""
    server = files.server(name)
    if not server.runs:
        return f"servers/{name} cannot run here: {server.not_run}"
    if not server.experiments:
        return f"servers/{name} serves no experiment: `experiments` of its server.toml is empty"
    serves = ", ".join(server.experiments)
    return f"servers/{name} does not serve {_or(experiments)}; it serves {serves}"


def left_out(
    dataset: str, servers: Collection[str] | None, experiments: Collection[str] | None,
    measured: Collection[str],
) -> list[str]:  # fmt: skip
    """Return a sentence for each chosen name that is not measured.

    `measured` are the servers that are.
    """
    held = sorted(files.dataset(dataset).experiments)
    absent = [name for name in experiments or () if name not in held]
    asked = [name for name in held if experiments is None or name in experiments]
    return [f"dataset {dataset!r} does not have {name}" for name in absent] + [
        unmeasured(name, asked) for name in servers or () if name not in measured
    ]


def _or(names: Collection[str]) -> str:
    *first, last = sorted(names)
    return f"{', '.join(first)} or {last}" if first else last
