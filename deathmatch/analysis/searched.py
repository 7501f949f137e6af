"""Capacities that trials found by search: of each variant, over its fresh starts.

In: `probes`, as `deathmatch.data.tables` has it, with labels. Out: frames for tables and charts.
"""

from dataclasses import replace

import polars as pl

from deathmatch.analysis import classes, phrases, stats
from deathmatch.capacity_search import search
from deathmatch.data.laws.law import TRIAL
from deathmatch.quantities.definitions import CAPACITY as QUANTITY
from deathmatch.quantities.definitions import CPU_PER_REPLY

# Fewer starts would not show a server that differs from start to start.
LEAST_STARTS = 3
FOUND, AT_LEAST, REFUSED = "found", "at least", "refused"
COST_COLUMN = "cpu_us_"
SHARE = "capacity_share"
CAPACITY = "capacity_rps"
HEADINGS = {
    "label": "Server", "outcome": "Outcome", "trials": "Starts", "median": "Capacity (req/s)",
    "low": "from", "high": "to", "reason": "Remark", classes.CLASS: "Class",
}  # fmt: skip
WHOLE_NUMBERS = {"median": 0, "low": 0, "high": 0}
CAPTION = (
    "The rate up to which each server answers in time, found by a search after each sweep, with a "
    "deep listen backlog: median over starts and interval, and what a reply costs the server at "
    f"shares of it (@sec-method-load). {classes.EXPLAINED}"
)
NO_SEARCH = "Capacities by search are not measured: this dataset asks for no search."
FOUND_COLUMNS = (
    {"outcome": pl.String} | stats.INTERVAL | {"reason": pl.String, "search_s": pl.Float64}
)


def ends(probes: pl.DataFrame) -> pl.DataFrame:
    """Return the row of each search's last probe, with `search_s`: how long it offered load."""
    took = probes.group_by(TRIAL, maintain_order=True).agg(
        search_s=pl.col("duration_us").sum() / 1e6
    )
    last = probes.drop_nulls("outcome")
    return last.join(took, on=TRIAL, how="left", maintain_order="left")


def capacities(probes: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return for each group its capacity in requests per second, or why there is none.

    Columns: `by`, FOUND_COLUMNS, and the class of those with a capacity (`classes`). With
    LEAST_STARTS searches that found one, `median` is over starts, with an interval
    (`stats.interval`) no narrower than that of a single search. "at least" if as many reached the
    client's limit and none found a capacity; "refused" otherwise, with the reason. `trials` are the
    starts that count.
    """
    rows, ended = [], ends(probes)
    for names, group in ended.group_by(by, maintain_order=True):
        rows.append(dict(zip(by, names)) | _capacity(group))
    schema = {name: probes.schema[name] for name in by} | FOUND_COLUMNS
    known = pl.DataFrame(rows, schema=schema, orient="row")
    found = ended.filter(outcome=search.FOUND).join(known.filter(outcome=FOUND), on=by, how="semi")
    classed = known.join(classes.of_trials(found, QUANTITY, by), on=by, how="left")
    return classed.sort("median", descending=True, nulls_last=True)


def _capacity(group: pl.DataFrame) -> dict:
    with_capacity = group.filter(outcome=search.FOUND)
    limited = group.filter(outcome=search.CLIENT)
    refused = group.filter(outcome=search.REFUSED)
    outcome, used = FOUND, with_capacity
    if not len(with_capacity) and len(limited) >= LEAST_STARTS:
        outcome, used = AT_LEAST, limited
    remarks = [
        f"{phrases.part(len(refused), len(group))} refused, the first: {refused['reason'][0]}"
        if len(refused) else "",
        f"{phrases.part(len(limited), len(group))} at the client's limit"
        if len(limited) and outcome == FOUND else "",
    ]  # fmt: skip
    if len(used) < LEAST_STARTS:
        outcome = REFUSED
        few = f"{len(with_capacity)} found one, where {LEAST_STARTS} must"
        remarks.insert(0, few)
        used = used.clear()
    capacity = stats.interval(used[CAPACITY].to_list())
    if len(used):
        capacity = replace(
            capacity,
            low=min(capacity.low, used["capacity_low_rps"].median()),
            high=max(capacity.high, used["capacity_high_rps"].median()),
        )
    return {
        "outcome": outcome, **capacity.row, "reason": "; ".join(filter(None, remarks)),
        "search_s": group["search_s"].median(),
    }  # fmt: skip


def offered_at(probes: pl.DataFrame, share: float) -> pl.DataFrame:
    """Return the probes at a multiple of the capacity, without those that the client limited.

    These are the probes for the cost of a reply and for an overload, not those of the search.
    """
    steps = pl.col("step").is_in([search.COST, search.OVERLOAD])
    return probes.filter(~pl.col("client_limited"), steps, (pl.col(SHARE) - share).abs() < 1e-9)


def costs(probes: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return the CPU time of a reply at shares of the capacity that each search found.

    Columns: `by`, `share_percent` of the same start's capacity, and INTERVAL of `cpu_us_per_reply`
    over starts.
    """
    known = probes.filter(pl.col("replies") > 0, step=search.COST).with_columns(
        share_percent=(100 * pl.col(SHARE)).round().cast(pl.Int64),
        **{CPU_PER_REPLY.name: CPU_PER_REPLY.of_trial.of_point()},
    )
    return stats.summarise(known, [*by, "share_percent"], CPU_PER_REPLY.name).sort(
        *by, "share_percent"
    )


def failures(probes: pl.DataFrame, by: list[str], share: float) -> pl.DataFrame:
    """Return the requests that failed at a multiple of the capacity, by group.

    Columns: `by`, trials, and medians over starts: `failed_percent` of the requests that were due,
    and `timeout_percent`, the time-outs of all errors; null without an error.
    """
    due, errors = pl.col("due"), pl.col("errors_total")
    known = offered_at(probes, share).filter(due > 0)
    timeouts = pl.when(errors > 0).then(100 * pl.col("errors_client_timeout") / errors)
    failed = 100 * (1 - pl.col("replies") / due).clip(lower_bound=0)
    return known.group_by(by, maintain_order=True).agg(
        trials=pl.len().cast(pl.Int64),
        failed_percent=failed.median(), timeout_percent=timeouts.median(),
    ).sort(by)  # fmt: skip


def variant_ratios(probes: pl.DataFrame) -> pl.DataFrame:
    """Return the capacity of each variant over that of the first of the same server.

    Columns: variant, against and those of `stats.INTERVAL`, paired by round; of starts whose search
    found a capacity.
    """
    found, rows = ends(probes).filter(outcome=FOUND), []
    for _, mine in found.group_by("server", maintain_order=True):
        first, *others = mine["label"].unique().sort()
        for label in others:
            of_both = stats.ratio(
                mine, pl.col("label") == label, pl.col("label") == first, CAPACITY
            )
            rows.append({"variant": label, "against": first} | of_both.row)
    names = {"variant": pl.String, "against": pl.String}
    return pl.DataFrame(rows, schema=names | stats.INTERVAL).sort("variant")


def table(capacities: pl.DataFrame, cost: pl.DataFrame) -> pl.DataFrame:
    """Return the printed table of `capacities` and `costs`, both by server and label.

    The cost of a reply at each share is a column: `cpu_us_10` at 10 %.
    """
    shares = cost["share_percent"].unique().sort().to_list()
    wide = cost.sort("share_percent").pivot(
        "share_percent", index=["server", "label"], values="median"
    )
    wide = wide.rename({str(share): f"{COST_COLUMN}{share}" for share in shares})
    known = capacities.join(wide, on=["server", "label"], how="left", maintain_order="left")
    few = known.select("label", "outcome", "trials", "median", "low", "high", classes.CLASS)
    return few.with_columns(
        *(known[f"{COST_COLUMN}{share}"] for share in shares), reason=known["reason"]
    )


def headings(printed: pl.DataFrame) -> dict[str, str]:
    """Return the headings of `table`'s columns."""
    of_costs = {
        name: replace(
            CPU_PER_REPLY,
            title=f"{CPU_PER_REPLY.title} at {name.removeprefix(COST_COLUMN)} % of it",
        ).heading
        for name in printed.columns
        if name.startswith(COST_COLUMN)
    }
    return HEADINGS | of_costs
