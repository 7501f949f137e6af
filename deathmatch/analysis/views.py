"""Views for notebooks: an experiment's tables with labels, variants and endings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from deathmatch.analysis import phrases, reply_rates
from deathmatch.analysis.by_trial import counted, rounds_of_all
from deathmatch.analysis.reply_rates import RATE, TOP
from deathmatch.data import laws, limits, table_files, tables
from deathmatch.data.laws.law import KEY, TRIAL
from deathmatch.load.generator import FIRST_WRONG
from deathmatch.plan import files
from deathmatch.plan.dataset import PROBES
from deathmatch.plan.experiment import Experiment as Spec
from deathmatch.plan.server import Server
from deathmatch.plan.trial import CONFIGURATION
from deathmatch.quantities.definitions import DIED
from deathmatch.quantities.quantity import WRONG, of_experiment

# Factors in labels, as words after the title; the others are axes of figures.
LABEL_FACTORS = (CONFIGURATION, "readiness", "schedulers", "max_connections", "opening", "run",
                 "values")  # fmt: skip
_LEVEL_PHRASES = {**phrases.CPUS, "one": "", "65535": "", "1024": "at most 1024 connections",
                  "0": "1,000 opened a second", "128": "", "10000": "opened all at once",
                  "planned": "",
                  "five-minutes": "five minutes", "repeated": "",
                  "varied": "values that vary"}  # fmt: skip


@dataclass(frozen=True)
class Experiment:
    """One experiment of one dataset, as checked tables (see `deathmatch.data.tables`)."""

    dataset: str
    name: str
    # More factors for labels, if a server has more than one level of them.
    label_factors: tuple[str, ...] = ()
    # Tables in memory, in place of the dataset's files.
    frames: Mapping[str, pl.DataFrame] | None = None

    @cached_property
    def spec(self) -> Spec:
        """The experiment's own file."""
        return files.experiment(self.name)

    @cached_property
    def trials(self) -> pl.DataFrame:
        """Every trial, with `label`: title, configuration and how the server runs, in words."""
        return self._with_label(self._read("trials"))

    @cached_property
    def points(self) -> pl.DataFrame:
        """Every point, with `title` and `label`, and with TOP if it was offered a rate.

        Wrong answers do not count as replies (`of_experiment`).
        """
        return reply_rates.with_top(of_experiment(self._labelled("points"), self.name))

    @property
    def times(self) -> pl.LazyFrame:
        """Every bin of the histograms that no law leaves out, with `title` and `label`.

        There are millions: filter before collecting.
        """
        return self.times_of(self.points)

    def times_of(self, points: pl.DataFrame) -> pl.LazyFrame:
        """Return the same of these points alone."""
        steady = laws.steady(points).select(*KEY, steady=pl.lit(True))
        lawful = laws.upheld(points).select(*KEY, "title", "label")
        known = lawful.join(steady, on=KEY, how="left").lazy()
        judged = pl.any_horizontal(map(pl.col("quantity").str.starts_with, laws.STEADY.columns))
        return (
            self._scan("times")
            .join(known, on=KEY, maintain_order="left")
            .filter(pl.col("steady").fill_null(False) | ~judged)
            .drop("steady")
        )

    @cached_property
    def samples(self) -> pl.DataFrame:
        """Every sample of counters, with `title` and `label`."""
        return self._labelled("samples")

    @cached_property
    def seconds(self) -> pl.DataFrame:
        """Every second of a point, with `title` and `label`."""
        return self._labelled("seconds")

    @cached_property
    def probes(self) -> pl.DataFrame:
        """Every rate that a search offered, by any load generator, with `title` and `label`."""
        trials, found = (tables.of_any_client(self._of_all(name)) for name in ("trials", PROBES))
        return _labelled_as(self._with_label(trials), tables.of_own_client(found))

    @cached_property
    def _of_its_client(self) -> Callable:
        """Selects the rows of the experiment's main load generator."""
        return tables.of_main_client(self._of_all("trials"))

    def _read(self, table: str) -> pl.DataFrame:
        return self._of_its_client(self._of_all(table))

    def _of_all(self, table: str) -> pl.DataFrame:
        if self.frames is not None:
            return self.frames[table]
        if not table_files.path_of(self.dataset, self.name, table).is_file():
            # The dataset may have only some of a chapter's experiments.
            return pl.DataFrame(schema=tables.columns(self.name, table))
        return tables.read(self.dataset, self.name, table)

    def _scan(self, table: str) -> pl.LazyFrame:
        path = table_files.path_of(self.dataset, self.name, table)
        if self.frames is not None or not path.is_file():
            return self._read(table).lazy()
        return self._of_its_client(tables.scan(self.dataset, self.name, table))

    def _labelled(self, table: str) -> pl.DataFrame:
        return _labelled_as(self.trials, self._read(table))

    def _with_label(self, trials: pl.DataFrame) -> pl.DataFrame:
        return label(trials, {name: self.spec.factors[name].default for name in self.label_factors})

    @cached_property
    def valid_points(self) -> pl.DataFrame:
        """The points that count: lawful, reported whole, not limited by the harness."""
        return counted(self.points)

    def ranked(self, points: pl.DataFrame) -> pl.DataFrame:
        """Return the points of rounds in which every variant ran, whether they count or not."""
        return points.filter(pl.col("n").is_in(rounds_of_all(self.trials, ["server", "variant"])))

    @cached_property
    def lawful_points(self) -> pl.DataFrame:
        """The points that break no law (`deathmatch.data.laws`), for figures."""
        return laws.upheld(self.points)

    @cached_property
    def limited_points(self) -> pl.DataFrame:
        """The lawful points that show the testbed's limit, which figures draw hollow."""
        return self.lawful_points.filter(limits.by_testbed(self.points))

    @property
    def top(self) -> int | None:
        """The highest offered rate, in requests per second; None without a point."""
        return self.points[RATE].max()

    @property
    def rates(self) -> str:
        """The offered rates in words: those up to the highest, then the lower ends of others."""
        offered = reply_rates.with_top(self.points.filter(pl.col(RATE) > 0))
        highest, *lower = sorted(offered[TOP].drop_nulls().unique(), reverse=True) or [None]
        if highest is None:
            return phrases.NOT_MEASURED
        rates = sorted(offered.filter(pl.col(TOP) == highest)[RATE].unique())
        listed = ", ".join(map(phrases.number, rates))
        if not lower:
            return listed
        ends = " or ".join(map(phrases.number, reversed(lower)))
        return f"{listed} (to servers that answer fewer, up to {ends})"

    @property
    def duration_s(self) -> str:
        """How long each rate was offered, in words."""
        known = sorted(self.points["duration_us"].drop_nulls().unique())
        if not known:
            return phrases.NOT_MEASURED
        return phrases.span(*(f"{us / 1e6:g}" for us in (known[0], known[-1])))

    @property
    def rounds(self) -> int:
        """How many trials a variant has at most."""
        return self.trials["n"].max() or 0

    @property
    def trials_each(self) -> str:
        """How many trials a variant has, in words: "3", or "3 to 6" where they differ."""
        variants = self.trials.group_by("server", "variant", maintain_order=True)
        counts = variants.len()["len"]
        return phrases.span(str(counts.min() or 0), str(counts.max() or 0))

    @property
    def machine(self) -> dict:
        """The machine of the first trial that recorded it: cpu, cpus, kernel, os, …"""
        known = self.trials.drop_nulls("cpu")
        return known.row(0, named=True) if len(known) else dict.fromkeys(self.trials.columns, "?")

    def source(self, *names: str) -> list[str]:
        """Return the paths of tables, for a figure's `source`."""
        return [f"data/{self.dataset}/{self.name}/{table}.parquet" for table in names]

    def endings(self) -> pl.DataFrame:
        """Return how trials ended: label, version, trials, clean (no wrong answers), reason.

        The reason is a trial's own, or how its server first failed and at which rate.
        """
        clean, reason = (pl.col("outcome") == "measured") & ~pl.col("wrong"), pl.col("reason")
        return (
            self._explained()
            .group_by("label", "version", maintain_order=True)
            .agg(
                pl.len().cast(pl.Int64).alias("trials"),
                clean.sum().cast(pl.Int64).alias("clean"),
                reason.filter(reason != "").first().str.split("\n").list.first(),
            )
            .sort("label")
        )

    def _explained(self) -> pl.DataFrame:
        """Return the trials with their reasons, and `wrong`, whether there were wrong answers."""
        if "server_state" not in self.points.columns:
            return self.trials.with_columns(wrong=pl.lit(False))
        wrong = pl.col(WRONG).fill_null(0)
        failed = self.points.filter((pl.col("server_state") != "ran") | (wrong > 0)).sort(RATE)
        first = failed.group_by(TRIAL, maintain_order=True).agg(
            pl.first("server_state", RATE, WRONG), (wrong > 0).any().alias("wrong"),
            pl.format(", the first: {}", pl.first(FIRST_WRONG)).fill_null("").alias("example"),
        )  # fmt: skip
        became = (
            pl.when(pl.col("server_state") == "ran")
            .then(pl.format("{} wrong answers at {} req/s{}", WRONG, RATE, "example"))
            .otherwise(pl.format("{} at {} req/s", "server_state", RATE))
        )
        return self.trials.join(first, on=TRIAL, how="left", maintain_order="left").with_columns(
            reason=pl.when(pl.col("reason").fill_null("") == "").then(became).otherwise("reason")
            .fill_null(""),
            wrong=pl.col("wrong").fill_null(False),
        )  # fmt: skip


def _labelled_as(trials: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    return frame.join(trials.select(*TRIAL, "title", "label"), on=TRIAL)


def trials(dataset: str) -> pl.DataFrame:
    """Return every trial of a dataset, by `experiment`, without the factors and labels."""
    known = files.names("experiment")
    held = [name for name in known if table_files.path_of(dataset, name, "trials").is_file()]
    every = [Experiment(dataset, name) for name in held or known[:1]]
    return pl.concat(
        each._read("trials").drop(each.spec.factors).with_columns(experiment=pl.lit(each.name))
        for each in every
    )


def why_not_measured(trial: dict, points: pl.DataFrame) -> str:
    """Return why none of a server's points counts; `trial` is its first trial."""
    if points.is_empty() and trial["outcome"].startswith("measured"):
        return "no rate was offered"
    if points.is_empty():
        first = (trial["reason"] or "").strip().partition("\n")[0]
        # Pandoc would take these characters in a server's output for markup.
        quoted = first.replace("`", "'").replace("{", "(").replace("}", ")")
        return f"{trial['outcome']}, `{quoted}`" if quoted else trial["outcome"]
    limited = points["client_limited"].sum()
    testbed, other, unknown = (
        points.select(limits.shows(points, limit).sum()).item()
        for limit in (limits.TESTBED, limits.OTHER, limits.UNKNOWN)
    )
    broken = (points["report"] == "truncated").sum()
    unlawful = len(points) - len(laws.upheld(points))
    reasons = {
        f"client-limited at {limited}": limited,
        f"at the testbed's own limit at {testbed}": testbed,
        f"where other work took the server's CPU at {other}": other,
        f"late without a null server that shows why at {unknown}": unknown,
        f"with a report of the load generator that breaks off at {broken}": broken,
        f"against a law at {unlawful}": unlawful,
    }
    text = " and ".join(text for text, count in reasons.items() if count)
    return f"{text} of {len(points)} points"


def label(trials: pl.DataFrame, defaults: dict) -> pl.DataFrame:
    """Return the trials with `label`: the title, then the levels in which its variants differ.

    `defaults` has further factors, each with the level that labels omit.
    """
    parts = []
    for column in LABEL_FACTORS:
        if column in trials.columns:
            varied = pl.col(column).n_unique().over("title") > 1
            word = pl.col(column).cast(pl.String).replace(_LEVEL_PHRASES).str.replace_all("-", " ")
            if column == CONFIGURATION:
                word = _called(trials)
            parts.append(pl.when(varied & (word != "")).then(pl.lit(", ") + word))
    for column, default in defaults.items():
        other = pl.col(column) != default
        parts.append(pl.when(other).then(pl.format(f", {column} {{}}", column)))
    return trials.with_columns(label=pl.concat_str("title", *parts, ignore_nulls=True))


def _called(trials: pl.DataFrame) -> pl.Series:
    """Return the title of each row's configuration; its name if the server no longer exists."""
    known, rows = _servers(trials), trials.select("server", CONFIGURATION).rows()
    called = {
        (server, level): known[server].called(level)
        if level is not None and server in known
        else level and level.replace("-", " ")
        for server, level in set(rows)
    }
    return pl.Series([called[row] for row in rows], dtype=pl.String)


def _servers(frame: pl.DataFrame) -> dict[str, Server]:
    """Return the servers of a frame that still have a folder, by name."""
    named = frame["server"].unique()
    return {name: files.server(name) for name in named if files.exists("server", name)}


def deaths_phrase(points: pl.DataFrame) -> str:
    """Return "2 of 6 trials": the trials in which the server died, of all."""
    trials = points.group_by(TRIAL, maintain_order=True).agg(dead=DIED.any())
    if trials.is_empty():
        return f"no trial {phrases.NOT_MEASURED}"
    return f"{trials['dead'].sum()} of {len(trials)} trials"


def subjects(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of servers that are compared: without those that measure the harness."""
    instruments = [name for name, server in _servers(frame).items() if server.instrument]
    return frame.filter(~pl.col("server").is_in(instruments))


def of_today(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the newest release of each system that the frame has."""
    return frame.filter(pl.col("server").is_in(files.newest(frame["server"].unique())))


def default_variants(
    frame: pl.DataFrame, experiment: str, named: frozenset[str] = frozenset()
) -> pl.DataFrame:
    """Return the rows of each server as it runs by default, except for the factors `named`.

    The default is its first configuration, and the experiment's default of each of its factors.
    """
    others = files.experiment(experiment).factors.keys() - named
    frame = at_defaults(frame, experiment, *others)
    return frame if CONFIGURATION in named else _first_configuration(frame, experiment)


def at_defaults(frame: pl.DataFrame, experiment: str, *factors: str) -> pl.DataFrame:
    """Return the rows that have the experiment's default of these factors, or lack the factor."""
    known = files.experiment(experiment).factors
    for name in factors:
        if name in frame.columns:
            frame = frame.filter(pl.col(name).is_null() | (pl.col(name) == known[name].default))
    return frame


def _first_configuration(frame: pl.DataFrame, experiment: str) -> pl.DataFrame:
    own = {name: each.configurations_in(experiment) for name, each in _servers(frame).items()}
    first = {name: levels[0] for name, levels in own.items() if levels}
    chosen = pl.col("server").replace_strict(first, default=None, return_dtype=pl.String)
    # Null: a trial from before the server had configurations ran as the present first one.
    return frame.filter(
        chosen.is_null() | pl.col(CONFIGURATION).is_null() | (pl.col(CONFIGURATION) == chosen)
    )
