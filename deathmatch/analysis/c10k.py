"""What the chapter on 10,000 WebSockets computes and draws, beside the post's table."""

import altair as alt
import polars as pl
from great_tables import GT

from deathmatch.analysis import phrases, stats, views
from deathmatch.analysis.views import RATE
from deathmatch.load import histogram
from deathmatch.paper import theme
from deathmatch.plan import files

# Our server and its schedulers -> the post's row that is the same software. Relatives have none,
# but stand beside it in tables. What the post ran on every core is "all" here.
POST = {
    ("erlang-cowboy", "all"): "erlang-cowboy",
    ("go-gonet", "all"): "go-gonet",
    ("pypy-tornado", "all"): "pypy-tornado-N",
    ("pypy-tornado", "one"): "pypy-tornado-1",
    ("tornado-ws", "all"): "python-tornado-N",
    ("tornado-ws", "one"): "python-tornado-1",
    ("gevent-websocket", "all"): "python-gevent-websocket-N",
    ("gevent-websocket", "one"): "python-gevent-websocket-1",
    ("node-ws", "all"): "node-ws-cluster",
    ("node-ws", "one"): "node-ws",
    ("webbit", "all"): "java-webbit",
    ("play", "all"): "scala-play",
    ("snap-ws", "all"): "haskell-snap",
    ("perl-ev-ws", "one"): "perl-ev",
}
# Relatives -> the post's rows that they are nearest to.
RELATIVES = {
    "clojure-netty": "clojure-aleph",
    "coder-ws": "go-gonet",
    "erlang-cowboy-otp27": "erlang-cowboy",
    "pypy-twisted": "pypy-twisted-1",
    "twisted-ws": "python-twisted-1",
}
# The post's environment that ours stands for.
BESIDE = {"unthrottled": "local", "ec2-like": "EC2"}
_TITLES = {"unthrottled": "unthrottled", "ec2-like": "EC2-like"}
_PLACES = {"moritz2012-local": "local", "moritz2012-ec2": "EC2"}
_STATISTICS = {"mean": "mean", "stddev": "stddev", "median": "p50", "p95": "p95", "p99": "p99",
               "p99.9": "p999"}  # fmt: skip
_QUANTILES = {"p01": 0.01, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p99": 0.99, "p999": 0.999}
_BEGINS = {"latency": "message_latency", "handshake_time": "handshake_time"}
_KEY = ["label", "server", "schedulers", "environment"]


def published_rows(moritz: pl.DataFrame) -> pl.DataFrame:
    """Return the post's two tables: system, environment ("local" or "EC2"), and as columns of
    `points` are named, connection_timeouts, and both quantities' statistics in us."""
    quantities = ("handshake_time", "message_latency", "connection_timeouts")
    known = moritz.filter(
        pl.col("testbed").is_in(list(_PLACES)),
        pl.col("quantity").is_in(quantities),
        pl.col("statistic").is_in([*_STATISTICS, "count"]),
        pl.col("position").is_not_null(),
    )
    column = (
        pl.when(pl.col("statistic") == "count")
        .then("quantity")
        .otherwise(
            pl.format(
                "{}_{}_us", "quantity", pl.col("statistic").replace_strict(_STATISTICS, default="")
            )
        )
    )
    rows = known.with_columns(column=column, environment=pl.col("testbed").replace(_PLACES))
    return rows.pivot("column", index=["system", "environment", "position"], values="value").sort(
        "environment", "position", descending=[True, False]
    )


def with_post(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with `post`, the name of the post's row of each server and schedulers."""
    pairs = pl.DataFrame(
        [(*ours, post) for ours, post in POST.items()],
        schema=["server", "schedulers", "post"], orient="row",
    )  # fmt: skip
    # One that cannot choose has one.
    return frame.join(
        pairs, how="left", left_on=["server", pl.col("schedulers").fill_null("one")],
        right_on=["server", "schedulers"],
    )  # fmt: skip


def beside_post(points: pl.DataFrame, theirs: pl.DataFrame) -> pl.DataFrame:
    """Return the 95th percentile of the latency, ours beside the post's on its own hardware.

    One row for each server and schedulers that the post had too: label, trials, p95_ms, low, high,
    published_ms; highest first.
    """
    named = (
        with_post(points)
        .filter(pl.col("post").is_not_null())
        .with_columns(p95_ms=pl.col("message_latency_p95_us") / 1e3)
    )
    found = stats.summarise(named, ["label", "post"], "p95_ms").rename({"median": "p95_ms"})
    local = theirs.filter(pl.col("environment") == BESIDE["unthrottled"]).select(
        "system", published_ms=pl.col("message_latency_p95_us") / 1e3
    )
    return (
        found.drop_nulls("p95_ms")
        .join(local, left_on="post", right_on="system")
        .sort("published_ms", descending=True)
    )


def boxes(times: pl.DataFrame, points: pl.DataFrame, quantity: str) -> pl.DataFrame:
    """Return the quantiles of a quantity for each server and environment, its trials together.

    Columns: label, server, schedulers, environment, limited, post, p01 to p999 in ms; null where a
    quantile lies among what never was. Trials that show the client's limits are left out, unless
    all of a server's do: then `limited` is true.
    """
    points = points.with_columns(limited=pl.col("client_limited").all().over(_KEY))
    points = points.filter(pl.col("limited") | ~pl.col("client_limited"))
    key = ["server", "variant", "n", RATE]
    times = times.join(points.select(*key, "limited"), on=key)
    wanted = "messages_due" if quantity == "latency" else "connections_opened"
    which = [*_KEY, "limited"]
    totals = {
        tuple(row[:-1]): row[-1]
        for row in points.group_by(which, maintain_order=True).agg(wanted).rows()
    }
    rows = []
    chosen = times.filter(pl.col("quantity") == quantity)
    for group, part in chosen.group_by(which, maintain_order=True):
        total = sum(filter(None, totals[group]))
        found = dict(
            zip(_QUANTILES, histogram.quantiles_us(part, list(_QUANTILES.values()), total))
        )
        rows.append(dict(zip(which, group)) | {k: v and v / 1e3 for k, v in found.items()})
    schema = dict.fromkeys(_KEY, pl.String) | {"limited": pl.Boolean}
    schema |= dict.fromkeys(_QUANTILES, pl.Float64)
    return with_post(pl.DataFrame(rows, schema=schema)).sort("p50", "p99", nulls_last=True)


def box_plot(found: pl.DataFrame, theirs: pl.DataFrame, begin: str) -> alt.VConcatChart:
    """Return a panel for each environment: boxes of `boxes`, the post's values as diamonds."""
    post = [pl.col(f"{begin}_{name}_us") / 1e3 for name in ("p50", "p95", "p99")]
    beside = theirs.select("system", "environment", *post).unpivot(
        index=["system", "environment"], value_name="value_ms"
    )
    panels = []
    ours_all = [found[name] for name in _QUANTILES]
    shown_all = [c.drop_nulls() for c in ours_all if len(c.drop_nulls())]
    named = found["post"].drop_nulls()
    shown = [
        BESIDE[environment] for environment in found["environment"].unique(maintain_order=True)
    ]
    known = beside.filter(
        pl.col("system").is_in(named.implode()), pl.col("environment").is_in(shown)
    )["value_ms"]
    low = min(c.min() for c in shown_all) * 0.8
    high = max([*(c.max() for c in shown_all), known.max() or 0]) * 1.4
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    ticks = [t for k in range(-3, 7) for t in (10.0**k,) if low <= t <= high]
    axis = alt.Axis(values=ticks, format=",~r")
    for environment, title in _TITLES.items():
        rows = found.filter(pl.col("environment") == environment)
        if not len(rows):
            continue
        order = rows["label"].to_list()
        edge = rows.with_columns(pl.col(name).fill_null(high).alias(name) for name in _QUANTILES)
        x = {"scale": scale, "axis": axis, "title": f"{begin.replace('_', ' ')} (ms)"}
        y = alt.Y("label:N", sort=order, title=None, axis=alt.Axis(labelLimit=240, grid=True))
        tip = [alt.Tooltip("label"), *(alt.Tooltip(f"{n}:Q", format=",.3~f") for n in _QUANTILES)]
        base = alt.Chart(edge).encode(y=y, tooltip=tip)
        dark, light = (
            alt.when("datum.limited").then(alt.value(grey)).otherwise(alt.value(colour))
            for grey, colour in (("#999999", theme.PALETTE[0]), ("#D5D5D5", theme.PALETTE[5]))
        )
        layers = [
            base.mark_rule().encode(x=alt.X("p01:Q", **x), x2="p99", color=dark),
            base.mark_bar(height=9).encode(x="p25:Q", x2="p75", color=light),
            base.mark_tick(thickness=2.5, height=13).encode(x="p50:Q", color=dark),
            base.mark_tick(thickness=1, height=8).encode(x="p999:Q", color=dark),
        ]
        beyond = rows.filter(pl.col("p99").is_null()).select("label", x_ms=pl.lit(high))
        if len(beyond):
            layers.append(
                alt.Chart(beyond)
                .mark_point(shape="triangle-right", size=70, color=theme.PALETTE[1], opacity=1)
                .encode(x="x_ms:Q", y=y)
            )
        marks = rows.join(
            beside.filter(pl.col("environment") == BESIDE[environment]),
            left_on="post", right_on="system",
        )  # fmt: skip
        if len(marks):
            layers.append(
                alt.Chart(marks.select("label", "value_ms"))
                .mark_point(
                    filled=False, shape="diamond", size=50, strokeWidth=1.3, color=theme.GREY
                )
                .encode(x="value_ms:Q", y=y)
            )
        panels.append(alt.layer(*layers).properties(width=430, height=17 * len(order), title=title))
    return alt.vconcat(*panels)


def course(seconds: pl.DataFrame, points: pl.DataFrame) -> pl.DataFrame:
    """Return one trial's course: label, environment, since_start_s, what, time_ms.

    It is the first that does not show the client's limits, or the first, with an asterisk.
    """
    key = ["server", "variant", RATE]
    which = points.sort("client_limited", "n").group_by(key, maintain_order=True).first()
    star = pl.when(pl.col("client_limited").any().over("label")).then(pl.lit(" *"))
    which = which.with_columns(star=star.otherwise(pl.lit(""))).select(*key, "n", "star")
    seconds = seconds.join(which, on=[*key, "n"]).with_columns(pl.col("label") + pl.col("star"))
    names = {
        ("latency", "p50_us"): "latency, median",
        ("latency", "p99_us"): "latency, 99th percentile",
        ("handshake_time", "p50_us"): "handshake, median",
    }
    parts = [
        seconds.filter(pl.col("quantity") == quantity).select(
            "label", pl.col("environment").replace(_TITLES), "since_start_s",
            pl.lit(what).alias("what"), time_ms=pl.col(column).clip(1) / 1e3,
        )
        for (quantity, column), what in names.items()
    ]  # fmt: skip
    return pl.concat(parts).drop_nulls("time_ms")


def pages(found: pl.DataFrame, most: int = 15) -> list[pl.DataFrame]:
    """Return `course` in parts of at most `most` servers, fastest first, for a figure each."""
    order = (
        found.group_by("label", maintain_order=True)
        .agg(pl.col("time_ms").median())
        .sort("time_ms", "label")["label"]
        .to_list()
    )
    number = -(-len(order) // most)
    size = -(-len(order) // max(1, number))
    parts = [order[at : at + size] for at in range(0, len(order), max(1, size))]
    return [found.filter(pl.col("label").is_in(part)) for part in parts]


def course_plot(found: pl.DataFrame) -> alt.FacetChart:
    """Return a small chart for each server of `course`, three in a row."""
    step = max(1, found["since_start_s"].n_unique() // 40)
    thin = found.filter(pl.col("since_start_s") % step == 0)
    order = (
        thin.group_by("label", maintain_order=True)
        .agg(pl.col("time_ms").median())
        .sort("time_ms", "label")
    )
    environments = [e for e in _TITLES.values() if e in thin["environment"].unique().to_list()]
    low, high = thin["time_ms"].min() * 0.8, thin["time_ms"].max() * 1.25
    ticks = [10.0**k for k in range(-3, 7) if low <= 10.0**k <= high]
    top = alt.Legend(title=None, orient="top", symbolStrokeColor=theme.GREY)
    base = alt.Chart().encode(
        x=alt.X("since_start_s:Q", title="since the start (s)"),
        y=alt.Y("time_ms:Q", title="time (ms)", axis=alt.Axis(values=ticks, format=",~r"),
                scale=alt.Scale(type="log", domain=[low, high], nice=False)),
        color=alt.Color("environment:N", sort=environments, legend=top),
        tooltip=["label", "environment", "what", "since_start_s", "time_ms"],
    )  # fmt: skip
    latency = ["latency, median", "latency, 99th percentile"]
    dash = alt.StrokeDash("what:N", sort=latency, scale=alt.Scale(domain=latency), legend=top)
    mark = alt.Shape(
        "what:N",
        scale=alt.Scale(domain=["handshake, median"], range=["cross"]),
        legend=alt.Legend(title=None, orient="top"),
    )
    is_latency = alt.FieldOneOfPredicate("what", latency)
    layers = alt.layer(
        base.transform_filter(is_latency).mark_line(strokeWidth=1.5).encode(strokeDash=dash),
        base.transform_filter(alt.LogicalNotPredicate(**{"not": is_latency}))
        .mark_point(size=35)
        .encode(shape=mark),
        data=thin,
    ).properties(width=165, height=85)
    return layers.facet(
        facet=alt.Facet("label:N", title=None, sort=order["label"].to_list()), columns=3
    )


def costs(points: pl.DataFrame) -> pl.DataFrame:
    """Return each server's memory and CPU, unthrottled: label, kib and us with low and high."""
    plain = points.filter(pl.col("environment") == "unthrottled").with_columns(
        memory_kib=pl.col("server_rss_per_connection_bytes") / 1024,
        cpu_us=pl.when(pl.col("replies") > 0).then(
            pl.col("server_cpu_ns") / 1e3 / pl.col("replies")
        ),
    )
    sides = [
        stats.summarise(plain, ["label"], column).select(
            "label", pl.col("median").alias(column), pl.col("low").alias(f"low_{column}"),
            pl.col("high").alias(f"high_{column}"),
        )
        for column in ("memory_kib", "cpu_us")
    ]  # fmt: skip
    return sides[0].join(sides[1], on="label").sort("memory_kib", nulls_last=True)


def cost_plot(found: pl.DataFrame) -> alt.HConcatChart:
    """Return the two panels of `costs`, in the same order of servers."""
    order = found["label"].to_list()
    panels = [
        theme.dots(
            found, column, "label", low=f"low_{column}", high=f"high_{column}", x_title=title,
            order=order, width=160,
        )
        for column, title in (
            ("memory_kib", "memory of a connection (KiB)"),
            ("cpu_us", "CPU of a message (µs)"),
        )
    ]  # fmt: skip
    return alt.hconcat(*panels)


# Connections that the server's pace left unopened, or half open, when the run ended.
_LATE = ["outcome_unfinished", "outcome_not_opened"]


def connections_table(points: pl.DataFrame) -> pl.DataFrame:
    """Return sums over trials: connections by how they fared, messages, client-limited trials.

    Late: not open yet when the run ended. `client_lag_p99_ms` is the median over trials.
    """
    failed = ["handshake_timeout", "refused", "reset", "unreachable", "handshake_rejected",
              "closed_by_server", "protocol_error", "out_of_descriptors", "out_of_ports",
              "other_error"]  # fmt: skip
    return (
        points.with_columns(
            held=pl.col("outcome_completed"),
            late=pl.sum_horizontal(_LATE),
            failed=pl.sum_horizontal(f"outcome_{outcome}" for outcome in failed),
            messages_lost=pl.col("messages_lost") + pl.col("messages_unsent"),
        )
        .group_by("label", pl.col("environment").replace(_TITLES), maintain_order=True)
        .agg(
            pl.col(
                "connections", "held", "connection_timeouts", "late", "failed", "messages_due",
                "messages_lost", "messages_mismatched", "client_limited",
            ).sum().cast(pl.Int64),
            client_lag_p99_ms=pl.col("client_lag_p99_us").median() / 1e3,
        )
        .sort("environment", "label", descending=[True, False])
    )  # fmt: skip


def whole(points: pl.DataFrame, theirs: pl.DataFrame) -> pl.DataFrame:
    """Return ours and the post's rows with the same statistics, each system's rows together.

    Columns: system, where, limited, ours, and those of `published_rows`. Ours are medians over
    trials; a quantile that lies among what never was in half of them is null.
    """
    statistics = [c for c in theirs.columns if c.endswith("_us")] + ["connection_timeouts"]
    ours = (
        with_post(points)
        .group_by("label", "server", "post", "environment", maintain_order=True)
        .agg(
            pl.col("client_limited").any().alias("limited"),
            *(pl.col(c).cast(pl.Float64).fill_null(float("inf")).median() for c in statistics),
        )
        .with_columns(pl.when(pl.col(c).is_finite()).then(c).alias(c) for c in statistics)
        .with_columns(ours=True, where=pl.col("environment").replace(_TITLES))
    )
    # On one CPU a system of which the post ran every core only is still that system.
    named = {server: post for (server, _), post in POST.items()} | RELATIVES
    near = pl.col("server").replace_strict(named, default=None)
    ours = ours.with_columns(near=pl.coalesce("post", near, "label"))
    theirs = theirs.select(
        *(pl.col(c).cast(pl.Float64) for c in statistics),
        near="system",
        label="system",
        ours=pl.lit(False),
        limited=pl.lit(False),
        where=pl.format("Moritz, {}", "environment"),
    )
    columns = ["label", "near", "where", "ours", "limited", *statistics]
    both = pl.concat([ours.select(columns), theirs.select(columns)])
    place = {"unthrottled": 0, "Moritz, local": 1, "EC2-like": 2, "Moritz, EC2": 3}
    # Each of ours stands before the post's row.
    return both.with_columns(
        system=pl.col("near").str.to_lowercase(),
        place=pl.col("where").replace_strict(place, default=9),
    ).sort("system", "place", "label")


def table_of(found: pl.DataFrame, begin: str) -> GT:
    """Return `whole` with the statistics of one quantity in ms, the post's rows in italics."""
    heads = {"mean": "Mean", "stddev": "σ", "p50": "Median", "p95": "95 %", "p99": "99 %",
             "p999": "99.9 %"}  # fmt: skip
    rows = []
    for row in found.to_dicts():
        mark = "{}" if row["ours"] else "*{}*"
        cells = {"System": row["label"], "Where": row["where"] + (r"\*" if row["limited"] else "")}
        cells |= {head: _ms(row[f"{begin}_{name}_us"]) for name, head in heads.items()}
        cells["Timeouts"] = phrases.number(row["connection_timeouts"] or 0)
        rows.append({head: mark.format(cell) for head, cell in cells.items()})
    columns = ["System", "Where", *heads.values(), "Timeouts"]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))
    return GT(frame).fmt_markdown(columns).cols_align("right", columns[2:])


def _ms(value_us: float | None) -> str:
    if value_us is None:
        return "lost"
    value = value_us / 1e3
    return phrases.number(value, 0 if value >= 1000 else 1 if value >= 10 else 2)


def environment() -> str:
    """Return in words what the throttled testbed gives a server."""
    side = files.testbed("ec2-like").server
    share, period_ms = side.cpu_share, side.cpu_period_us / 1000
    return f"{share * period_ms:g} ms of every {period_ms:g} ms, by a cgroup's quota."


def jitter_words(trials: pl.DataFrame) -> str:
    """Return a sentence on the link's jitter, from what the trials recorded; empty without any."""
    said = trials["throttle"].drop_nulls().filter(trials["throttle"].drop_nulls() != "")
    if not len(said):
        return " No trial of this dataset was throttled."
    if said.str.contains("jitter not in force").any():
        return " Its network should jitter too, but this kernel has no netem: it did not."
    return " Its replies are delayed by netem besides."


def best_words(best: dict | None) -> str:
    """Return which server had the lowest 95th percentile, unthrottled."""
    if best is None or best["median"] is None:
        return "Unthrottled, no server answered 95 % of its messages in a trial that counts."
    found = {key: best[key] and best[key] / 1e3 for key in ("median", "low", "high")}
    said = phrases.interval(found | {"trials": best["trials"]}, "ms", 1)
    return f"Unthrottled, {best['label']} has the lowest 95th percentile: {said}."


def limited_words(limited: pl.DataFrame, points: pl.DataFrame) -> str:
    """Return how many trials show the client's limits, and why."""
    if not len(limited):
        return f"None of the {len(points)} trials is client-limited."
    some = limited["client_limited_by"].drop_nulls()
    why = f" (the first: {some[0]})" if len(some) else ""
    return (
        f"{len(limited)} of {len(points)} trials are client-limited{why}: their latencies are in "
        "part the client's own."
    )


def held(points: pl.DataFrame) -> pl.DataFrame:
    """Return of each server on one CPU, unthrottled: label, whole, late, outcome_completed.

    Instruments are not counted. Whole: in every trial all connections were held and none timed
    out. Late: what was not held had not been opened when the run ended.
    """
    plain = views.subjects(points).filter(
        pl.col("environment") == "unthrottled", pl.col("schedulers").fill_null("one") == "one"
    )
    kept = pl.col("outcome_completed") == pl.col("connections")
    whole = (kept & (pl.col("connection_timeouts") == 0)).all()
    told = pl.sum_horizontal("outcome_completed", *_LATE)
    return plain.group_by("label", maintain_order=True).agg(
        whole.alias("whole"),
        (told == pl.col("connections")).all().alias("late"),
        pl.col("outcome_completed").median(),
    ).sort("label")  # fmt: skip


def held_count(found: pl.DataFrame) -> str:
    """Return "20 of 22": the servers of `held` that are whole."""
    if not len(found):
        return phrases.NOT_MEASURED
    return f"{found['whole'].sum()} of {len(found)}"


def held_words(found: pl.DataFrame) -> str:
    """Return how many servers of `held` are whole, and how many connections the others held."""
    if not len(found):
        return f"ten thousand connections: {phrases.NOT_MEASURED}."
    failed = [
        f"{row['label']} held {phrases.number(row['outcome_completed'])} (median of its trials)"
        for row in found.filter(~pl.col("whole")).to_dicts()
    ]
    whole = held_count(found)
    said = f"{whole} servers held every connection to the end of every trial, with none timed out"
    late = "; what they lack was not open yet when the run ended" if found["late"].all() else ""
    return f"{said}; {phrases.listed(failed)}{late}." if failed else f"{said}."


def growth_words(points: pl.DataFrame) -> str:
    """Return the range of the latency's growth over servers in the throttled environment."""
    found = (
        views.subjects(points)
        .filter(pl.col("environment") == "ec2-like")["message_latency_growth"]
        .drop_nulls()
    )
    if not len(found):
        return phrases.NOT_MEASURED + " as a multiple of"
    return f"{found.min():.2g} to {found.max():.2g} times"
