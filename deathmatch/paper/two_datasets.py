"""Two datasets compared: what a notebook's parameter `compare` shows.

    compare_experiments(dataset, compare, "backlog")    # the last cell of a notebook
    compare_claims(dataset, compare)                    # of the ledger

In: the tables of both datasets, or both ledgers. Out: sections with figures and tables, shown in
the notebook. Nothing is shown where `compare` is empty. Servers that only one of the two has are
in the tables.
"""

import polars as pl
from IPython.display import Markdown
from IPython.display import display as show_markdown

from deathmatch.analysis import agreement, by_trial, claims, phrases, stats, verdict_words, views
from deathmatch.analysis.interval import Interval
from deathmatch.analysis.reply_rates import ALL_ANSWERED, RATE, REPLY, TOP
from deathmatch.data import laws, table_files
from deathmatch.errors import UserError
from deathmatch.load import registry
from deathmatch.paper import display, theme
from deathmatch.plan import files, paths
from deathmatch.plan.root import ROOT
from deathmatch.quantities.definitions import BYTES_PER_MESSAGE, HIGHEST_REPLY_RATE
from deathmatch.quantities.samples import needed_samples


def _in_common(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points at rates that both datasets offered: lawful, and not client-limited.

    To a variant of both, in both. TOP is the highest of these rates, valid point or not.
    """
    sides = [set(part[RATE]) for part in points.partition_by("dataset")]
    datasets = pl.col("dataset").n_unique()
    shared = points.filter(
        pl.col(RATE).is_in(set.intersection(*sides)),
        datasets.over("label", RATE) == datasets.over("label"),
    ).with_columns(pl.col(RATE).max().over("label").alias(TOP))
    return by_trial.counted(shared)


def _reply_rates(points: pl.DataFrame) -> pl.DataFrame:
    """Return each trial's highest reply rate at the rates that both datasets offered."""
    common = _in_common(points)
    peaks = by_trial.values(common, HIGHEST_REPLY_RATE, ["dataset", "label"])
    tops = common.select("label", TOP).unique()
    return peaks.rename({HIGHEST_REPLY_RATE.name: "value"}).join(
        tops, on="label", maintain_order="left"
    )


def _all_answered(trials: pl.DataFrame) -> list[str]:
    """Return what answered all that was offered in each trial of both datasets.

    Their rates are that of the load, alike whatever the machines. None of `trials` without TOP.
    """
    if TOP not in trials.columns:
        return []
    alike = trials.group_by("label", maintain_order=True).agg(
        (pl.col("value") >= ALL_ANSWERED * pl.col(TOP)).all() & (pl.n_unique("dataset") == 2)
    )
    return alike.filter("value")["label"].to_list()


def _closed_loop(points: pl.DataFrame) -> pl.DataFrame:
    """Return each trial's rate of round trips in a closed loop."""
    closed = laws.upheld(points).filter(pl.col(RATE) == 0)
    return closed.select("dataset", "label", "n", value=REPLY)


def _message_latency(points: pl.DataFrame) -> pl.DataFrame:
    """Return each trial's 99th percentile of latency at the highest rate that both offered."""
    common = laws.steady(_in_common(points))
    common = common.filter(pl.col("messages_due") >= needed_samples(0.99))
    top = common.filter(pl.col(RATE) == pl.col(TOP)).drop_nulls("message_latency_p99_us")
    return top.select("dataset", "label", "n", value="message_latency_p99_us")


def _bytes_per_message(points: pl.DataFrame) -> pl.DataFrame:
    """Return by how much each trial's resident set grew for a message."""
    grown = by_trial.values(points, BYTES_PER_MESSAGE, ["dataset", "label"])
    return grown.rename({BYTES_PER_MESSAGE.name: "value"})


# By the load generator's headline, None without load: what a trial comes to, and its name.
MEASURES = {
    "reply_rate": (_reply_rates, "highest reply rate at a rate that both offered (req/s)"),
    "closed_loop": (_closed_loop, "round trips in a closed loop (req/s)"),
    "latency": (_message_latency, "99th percentile of message latency (µs)"),
    None: (_bytes_per_message, "growth of the resident set (bytes per message)"),
}

# A span of values of which a linear axis would show the longest alone.
WIDE = 100


def compare_experiments(dataset: str, compare: str, *experiments: str) -> None:
    """Show a section with a figure and a table for each experiment that both datasets have.

    Shows nothing if `compare` is empty, or the paper shows all of another dataset; raises UserError
    if there is no such dataset.
    """
    own = [name for name in experiments if table_files.dataset_with(dataset, name) == dataset]
    if not compare or not own:
        return
    _check(dataset, compare)
    _show_text(f"## Compared with the dataset {compare} {{#sec-{experiments[0]}-compare}}")
    for experiment in experiments:
        has = {name: table_files.path_of(name, experiment, "points").is_file() for name in
               (dataset, compare)}  # fmt: skip
        if not all(has.values()):
            lacks = " and ".join(f"`{name}`" for name in has if not has[name])
            _show_text(f"The experiment *{experiment}* is not in {lacks}.")
            continue
        _show_experiment(dataset, compare, experiment)


def _check(dataset: str, compare: str) -> None:
    if compare == dataset:
        raise UserError(f"{compare!r} is the dataset itself", "parameter compare", "name another")
    paths.check_dataset(compare, "parameter compare")
    folder = ROOT / "data" / compare
    if not list(folder.glob("*/points.parquet")):
        raise UserError(
            f"the dataset {compare!r} has no tables to compare with",
            where="parameter compare",
            remedy=f"measure it: snakemake --config dataset={compare}",
        )


def _show_text(text: str) -> None:
    show_markdown(Markdown(text))


def _show_experiment(dataset: str, compare: str, experiment: str) -> None:
    client = files.experiment(experiment).client
    measure, meaning = MEASURES[registry.generator(client).headline if client else None]
    trials = measure(points(dataset, compare, experiment))
    if trials.is_empty():
        _show_text(f"*{experiment}*: the two datasets have no valid point in common.")
        return
    summary = stats.summarise(trials.sort("label", "n"), ["dataset", "label"], "value")
    best = (
        summary.group_by("label", maintain_order=True)
        .agg(pl.col("median").max())
        .sort("median", descending=True)
    )
    alike = _all_answered(trials)
    shared = summary.filter(pl.col("dataset").n_unique().over("label") == 2)
    drawn = (shared if len(shared) else summary).filter(~pl.col("label").is_in(alike))
    source = [f"data/{name}/{experiment}/points.parquet" for name in (dataset, compare)]
    if drawn.is_empty():
        _show_text(f"*{experiment}*: every server of both answered all that both offered.")
    else:
        _show_dots(drawn, experiment, meaning, best["label"].to_list(), len(alike), source)
    sides = {
        name: summary.filter(dataset=name).select(
            "label", **{name: interval_text(), f"_{name}": "median"}
        )
        for name in (dataset, compare)
    }
    both = sides[dataset].join(sides[compare], on="label", how="full", coalesce=True)
    display.table(
        both.with_columns(
            ratio=pl.when(~pl.col("label").is_in(alike))
            .then(pl.col(f"_{dataset}") / pl.col(f"_{compare}"))
        )
        .join(best, on="label").sort("median", descending=True)
        .select("label", dataset, compare, "ratio"),
        label=f"tbl-{experiment}-compare",
        caption=(
            f"*{experiment}*: {meaning} as median, interval and trials, and the ratio of the "
            "medians. The trials were not interleaved, so the machines' differences are in it."
            + (" No ratio where both answered all that was offered." if alike else "")
        ),
        source=source,
        names={"label": "Server", "ratio": f"{dataset} / {compare}"},
        decimals={"ratio": 2},
    )  # fmt: skip


def _show_dots(
    drawn: pl.DataFrame,
    experiment: str,
    meaning: str,
    order: list[str],
    alike: int,
    source: list[str],
) -> None:
    """Show medians and intervals of both datasets; `alike` servers more answered all offered."""
    span = pl.concat([drawn["low"], drawn["median"], drawn["high"]]).drop_nulls()
    undrawn = "the servers that only one of the two has"
    if alike:
        undrawn += f", and the {alike} that answered all that both offered"
    display.figure(
        theme.dots(
            drawn, "median", "label", low="low", high="high", colour="dataset",
            x_title=meaning, order=order, log_x=span.min() > 0 and span.max() > WIDE * span.min(),
        ),
        label=f"fig-{experiment}-compare",
        caption=(
            f"*{experiment}*, factors at their defaults: {meaning}; medians over trials with "
            f"their intervals; @tbl-{experiment}-compare has {undrawn}."
        ),
        alt="One row for each server, with one dot for each of the two datasets that has it.",
        source=source,
    )  # fmt: skip


def points(dataset: str, compare: str, experiment: str) -> pl.DataFrame:
    """Return the points of both datasets with `dataset` and `label`, other factors at defaults."""
    both = [views.Experiment(name, experiment) for name in (dataset, compare)]
    # Labels anew: they say in what the variants of both differ.
    trials = views.label(pl.concat([_tagged(seen.trials, seen.dataset) for seen in both]), {})
    both_points = pl.concat([_tagged(seen.points, seen.dataset) for seen in both])
    for factor, spec in files.experiment(experiment).factors.items():
        if factor not in views.LABEL_FACTORS:
            at_default = (pl.col(factor) == spec.default).fill_null(False)
            # A server that cannot have the default stays as it is.
            both_points = both_points.filter(at_default | ~at_default.any().over("server"))
    key = ["dataset", "server", "variant", "n"]
    return both_points.join(trials.select(*key, "label"), on=key)


def _tagged(frame: pl.DataFrame, dataset: str) -> pl.DataFrame:
    return frame.drop("label").with_columns(dataset=pl.lit(dataset))


def interval_text() -> pl.Expr:
    """Return an interval's columns as "12 345 [12 001, 12 800], n = 3"."""

    def text(row: dict) -> str:
        return f"{phrases.brackets(Interval.from_row(row))}, n = {row['trials']}"

    return pl.struct(*stats.INTERVAL).map_elements(text, return_dtype=pl.String)


def compare_claims(dataset: str, compare: str) -> None:
    """Show the claims that either dataset could run, with both verdicts; nothing if none."""
    if not compare:
        return
    _check(dataset, compare)
    _show_text("## Every claim in both datasets {#sec-machines-claims}")
    ledgers = [claims.of_dataset(name) for name in (dataset, compare)]
    shown = agreement.verdicts(*ledgers).unique("claim", keep="first", maintain_order=True)
    shown = shown.select("claim", "says", "kind")
    for ledger in ledgers:
        rows = [(entry.claim, verdict_words.verdicts_phrase(entry)) for entry in ledger]
        side = pl.DataFrame(rows, ["claim", "verdicts"], orient="row")
        shown = shown.join(side, on="claim", suffix="_other", maintain_order="left")
    display.table(
        shown.drop("claim"),
        label="tbl-machines-claims",
        caption="The verdicts of both datasets, with the effect that each found; opposed first.",
        source=[f"data/{name}" for name in (dataset, compare)],
        names={"says": "Claim", "kind": "Verdicts", "verdicts": dataset, "verdicts_other": compare},
    )
