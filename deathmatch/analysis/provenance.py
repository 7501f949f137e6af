"""What every figure says of its measurement: how many trials, which interval, which testbed."""

from pathlib import PurePath

import polars as pl

from deathmatch.analysis.stats import CONFIDENCE
from deathmatch.data import tables


def sentence(sources: list[str], drawn: bool = True) -> str:
    """Return "n = 3 trials; bars and bands: the range …; testbed netns: …" for the tables drawn.

    `sources` are paths from the root; those that are no table of a dataset, such as a source's
    numbers, say nothing. `drawn` tells whether the figure has intervals. Empty where no table
    is named or exists.
    """
    frames = [frame for path in sources if (frame := _trials(path)) is not None]
    if not frames:
        return ""
    known = ["server", "variant", "outcome", "testbed", "cpu", "cpus", "kernel"]
    trials = pl.concat([frame.select(known) for frame in frames])
    counts = [_counts(frame) for frame in frames]
    fewest, most = min(low for low, _ in counts), max(high for _, high in counts)
    n = f"n = {most}" if fewest == most else f"n = {fewest} to {most}"
    parts = [f"{n} trials a variant"]
    if drawn:
        level = f"{100 * CONFIDENCE:.0f}\u202f% bootstrap interval"
        # A resample of three has the smallest for its median in 7 of 27.
        bars = f"the trials' range (their {level})" if most <= 3 else f"{level} of the median"
        parts.append(f"bars and bands: {bars}")
    return "; ".join([*parts, testbed(trials)]) + "."


def testbed(trials: pl.DataFrame) -> str:
    """Return "testbed netns: 2 CPUs (AMD EPYC), Linux 6.1" for a table of trials."""
    found = (
        trials.drop_nulls("cpu").select("testbed", "cpus", "cpu", "kernel").unique().sort(pl.all())
    )
    return (
        "; ".join(
            f"testbed {bed}: {cpus} CPUs ({cpu}), Linux {kernel}"
            for bed, cpus, cpu, kernel in found.iter_rows()
        )
        or "testbed not recorded"
    )


def sides(trials: pl.DataFrame) -> str:
    """Return how client and server share the CPUs of the trials, as the end of a sentence.

    A server that runs on all takes the client's by intent, so that any trial apart is enough.
    """
    known = trials.drop_nulls(["server_cpus", "client_cpus"]).select("server_cpus", "client_cpus")
    pairs = [(set(server), set(client)) for server, client in known.unique().rows()]
    if not pairs:
        return "whose CPUs were not recorded"
    apart = [pair for pair in pairs if not pair[0] & pair[1]]
    if not apart:
        return "on the same CPUs, so that each takes from the other and rates are of both"
    alone = all(len(server) == len(client) == 1 for server, client in apart)
    return "one CPU each" if alone else "each on CPUs of its own"


def _trials(source: str) -> pl.DataFrame | None:
    parts = PurePath(source).parts
    if len(parts) != 4 or parts[0] != "data" or not parts[3].endswith(".parquet"):
        return None
    path = tables.path_of(parts[1], parts[2], "trials")
    return pl.read_parquet(path) if path.is_file() else None


def _counts(trials: pl.DataFrame) -> tuple[int, int]:
    """Return how many trials the variant with fewest and that with most were measured in."""
    sizes = trials.group_by("server", "variant", maintain_order=True).agg(
        pl.col("outcome").str.starts_with("measured").sum()
    )
    ran = sizes.filter(pl.col("outcome") > 0)["outcome"]
    return (int(ran.min()), int(ran.max())) if len(ran) else (0, 0)
