"""The measurement behind a figure: how many trials, which interval, which testbed.

In a report a figure states all of it (`sentence`). In the paper, whose method states the usual
testbed, a figure states what differs (`difference`).
"""

from pathlib import Path

import polars as pl

from deathmatch.analysis import phrases
from deathmatch.analysis.stats import CONFIDENCE
from deathmatch.data import table_files
from deathmatch.plan import paths
from deathmatch.plan.dataset import Dataset

TESTBED = ["testbed", "cpus", "cpu", "kernel"]
"""The columns that say where a trial ran; `Testbed` has their values in this order."""
Testbed = tuple[str, int, str, str]


def sentence(sources: list[str], drawn: bool = True) -> str:
    """Return "n = 3 trials; bars and bands: the range …; testbed netns: …" for the tables drawn.

    `sources` are paths from the root; those that are no tables of a dataset are skipped. `drawn`:
    whether the figure has intervals. Empty if no table is named or exists.
    """
    frames = [frame for path in sources if (frame := _trials(path)) is not None]
    if not frames:
        return ""
    trials = pl.concat([frame.select(TESTBED) for frame in frames])
    counts = [_counts(frame) for frame in frames]
    fewest, most = min(low for low, _ in counts), max(high for _, high in counts)
    parts = [f"n = {phrases.span(str(fewest), str(most))} trials a variant"]
    if drawn:
        level = f"{100 * CONFIDENCE:.0f}{phrases.THIN}% bootstrap interval"
        # The median of a resample of three is the smallest value in 7 of 27 cases.
        bars = f"the trials' range (their {level})" if most <= 3 else f"{level} of the median"
        parts.append(f"bars and bands: {bars}")
    return "; ".join([*parts, testbed(trials)]) + "."


def difference(usual: Testbed | None, sources: list[str]) -> str:
    """Return where the drawn tables were measured, if that differs from most of the dataset.

    `usual` is the `usual_testbed` of the paper's dataset; `sources` as for `sentence`. A figure
    with trials of the usual testbed names only other machines and kernels, since its rows name the
    testbed; of several kinds of CPU it says how many. Empty if no trial recorded its machine.
    """
    frames = [frame.select(TESTBED) for path in sources if (frame := _trials(path)) is not None]
    kinds = testbeds(pl.concat(frames)) if frames else []
    if not kinds or usual is None:
        return ""
    beds, processors = ({kind[place] for kind in kinds} for place in (0, 2))
    if beds == {usual[0]} and len(processors) > 1:
        return f"Measured on {len(processors)} kinds of CPU."
    if usual not in kinds:
        return f"Measured on {testbeds_text(kinds)}."
    others = [kind for kind in kinds if kind[1:] != usual[1:]]
    return f"Measured also on {testbeds_text(others)}." if others else ""


def usual_testbed(dataset: str) -> Testbed | None:
    """Return the testbed of most trials of a dataset; None if no trial recorded it."""
    tables_of_trials = sorted((table_files.ROOT / "data" / dataset).glob("*/trials.parquet"))
    frames = [pl.read_parquet(path, columns=TESTBED) for path in tables_of_trials]
    if not frames:
        return None
    counted = (
        pl.concat(frames)
        .drop_nulls("cpu")
        .group_by(TESTBED, maintain_order=True)
        .len()
        .sort(pl.all())
    )
    return max(counted.iter_rows(), key=lambda row: row[-1])[:-1] if len(counted) else None


def testbed(trials: pl.DataFrame) -> str:
    """Return "testbed netns: 2 CPUs (AMD EPYC), Linux 6.1" for a table of trials."""
    return testbeds_text(testbeds(trials)) or "testbed not recorded"


def testbeds(trials: pl.DataFrame) -> list[Testbed]:
    """Return the testbeds that a table of trials names, each once and in order."""
    return trials.drop_nulls("cpu").select(TESTBED).unique().sort(pl.all()).rows()


def testbeds_text(kinds: list[Testbed]) -> str:
    """Return testbeds as text, each as "testbed netns: 2 CPUs (AMD EPYC), Linux 6.1"."""
    return "; ".join(
        f"testbed {bed}: {cpus} CPUs ({cpu}), Linux {kernel}" for bed, cpus, cpu, kernel in kinds
    )


def place(trials: pl.DataFrame) -> str:
    """Return where server and clients ran, in sentences.

    A dataset of several machines describes each of them, and the bound of their clocks' offsets.
    """
    if not apart(trials):
        return (
            f"Client and server are two network namespaces of one machine of {cpus(trials)} CPUs, "
            f"{sides(trials)}."
        )
    remote = trials.drop_nulls("machines")
    described = sorted({machine for machines in remote["machines"] for machine in machines})
    sentences = [f"Each host is a machine of its own ({'; '.join(described)}), reached by ssh."]
    if (bound_us := remote["clock_bound_us"].max()) is not None:
        sentences.append(
            "A latency is on one client's own clock; how far two clocks are apart was known within "
            f"{bound_us} µs at each point."
        )
    if (late_us := remote["late_us"].max()) is not None:
        sentences.append(f"Several clients began at an agreed instant, {late_us} µs late at most.")
    return " ".join(sentences)


def cannot(trials: pl.DataFrame) -> str:
    """Return what the testbed cannot show, as sentences."""
    if apart(trials):
        return (
            "Server and clients are machines of their own, joined by one link. Another link, "
            "another network card and another number of cores may change the results."
        )
    known = trials["cpu"].drop_nulls().unique()
    cpu = f"of {len(known)} kinds" if len(known) > 1 else (*known, "unknown")[0]
    return (
        f"Client and server run on one machine of {cpus(trials)} CPUs ({cpu}) over a virtual link. "
        "This compares variants of one server and shows mechanisms in the kernel's counters. It "
        "cannot show how fast a server is on other hardware, what a network card does, or how a "
        "server scales over cores, because a server on every CPU takes CPU time from its client."
    )


def apart(trials: pl.DataFrame) -> bool:
    """Return whether server and clients were machines of their own in some trial."""
    return bool(trials["machines"].drop_nulls().len())


def cpus(trials: pl.DataFrame) -> str:
    """Return how many CPUs the server's machine has; "unknown" if no trial recorded it."""
    recorded = trials["cpus"].drop_nulls()
    return str(recorded[0]) if len(recorded) else "unknown"


def sides(trials: pl.DataFrame) -> str:
    """Return how client and server share the CPUs of the trials, as the end of a sentence.

    Servers on all CPUs take the client's by design, so one trial on separate CPUs decides.
    """
    known = trials.drop_nulls(["server_cpus", "client_cpus"]).select("server_cpus", "client_cpus")
    pairs = [(set(server), set(client)) for server, client in known.unique().rows()]
    if not pairs:
        return "whose CPUs were not recorded"
    disjoint = [pair for pair in pairs if not pair[0] & pair[1]]
    if not disjoint:
        return "on the same CPUs, so that each takes from the other and rates are of both"
    alone = all(len(server) == len(client) == 1 for server, client in disjoint)
    return "one CPU each" if alone else "each on CPUs of its own"


def _trials(source: str) -> pl.DataFrame | None:
    dataset, parts = paths.split(Path(source))
    if len(parts) != 2 or not source.startswith("data/") or not source.endswith(".parquet"):
        return None
    path = table_files.path_of(dataset, parts[0], "trials")
    return pl.read_parquet(path) if path.is_file() else None


def _counts(trials: pl.DataFrame) -> tuple[int, int]:
    """Return the fewest and the most measured trials of a variant."""
    sizes = trials.group_by("server", "variant", maintain_order=True).agg(
        pl.col("outcome").str.starts_with("measured").sum()
    )
    ran = sizes.filter(pl.col("outcome") > 0)["outcome"]
    return (int(ran.min()), int(ran.max())) if len(ran) else (0, 0)


def waived(dataset: Dataset | None) -> str:
    """Return which rules of `check --strict` a dataset waives, each with its reason; "" if none."""
    waives = dataset.waives if dataset else {}
    return " ".join(f"The dataset waives {rule}: {reason}" for rule, reason in waives.items())
