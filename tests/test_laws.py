"""The laws: sound data obey them; a fault planted there breaks the law that is of it."""

from functools import cache

import polars as pl
import pytest
from conftest import MINIATURE, instead
from scipy.stats import binom

from deathmatch.analysis import law_findings, selecting, views
from deathmatch.data import laws, limits, tables
from deathmatch.data.laws.law import KEY, RATE, TRIAL
from deathmatch.quantities.quantity import needed_samples

TABLES = ("trials", "points", "times", "samples", "seconds")
pytestmark = pytest.mark.usefixtures("miniature")


def read(experiment: str, table: str) -> pl.DataFrame:
    return tables.read(MINIATURE.name, experiment, table)


@cache
def sound(experiment: str) -> dict[str, pl.DataFrame]:
    """Return the tables of one round of the miniature."""
    frames = {name: read(experiment, name) for name in TABLES}
    return {name: frame.filter(pl.col("n") == 1) for name, frame in frames.items()}


def broken(experiment: str, **changed: pl.DataFrame) -> pl.DataFrame:
    given = laws.evidence(experiment, sound(experiment) | changed)
    return laws.judgements(given).filter("broken")


def planted(experiment: str, table: str, **columns: pl.Expr) -> dict[str, pl.DataFrame]:
    return {table: sound(experiment)[table].with_columns(**columns)}


@pytest.mark.parametrize(
    "experiment", ["overhead", "readiness", "c10k", "select-overload", "dynamic", "accept-queue"]
)
def test_sound_data_breaks_no_law(experiment):
    """Servers that died, timeouts, overflows and closed loops are in it."""
    assert set(broken(experiment)["law"]) <= {"LAW-STEADY"}


US = "connection_time_avg_us"
FAULTS = [
    # Mean times in the wrong unit; half of the replies not timed; a server that is idle half the
    # time, of which the client does not tell.
    ("LAW-LITTLE", "dynamic", "points", {US: pl.col(US) * 1000}),
    ("LAW-LITTLE", "overhead", "times", {"time_us": pl.col("time_us") // 2}),
    ("LAW-LITTLE", "overhead", "times", {"time_us": pl.col("time_us") * 2}),
    ("LAW-REQUESTS", "dynamic", "points", {"replies": pl.col("requests") + 1}),
    ("LAW-REQUESTS", "c10k", "points", {"messages_lost": pl.col("messages_lost") + 1}),
    ("LAW-CONNECTIONS", "dynamic", "points", {"connections": pl.col("connections") + 1}),
    ("LAW-CONNECTIONS", "c10k", "points", {"outcome_reset": pl.col("outcome_reset") + 1}),
    ("LAW-HISTOGRAM", "overhead", "points", {"replies": pl.col("replies") - 1}),
    ("LAW-HISTOGRAM", "c10k", "times", {"count": pl.col("count") + 1}),
    ("LAW-LOAD", "overhead", "points", {"requests": pl.lit(0, pl.Int64)}),
    ("LAW-OPENS", "dynamic", "points", {"client_active_opens": pl.col("connections") - 1}),
    ("LAW-OPENS", "overhead", "points", {"connects": pl.col("connects") + 2}),
    ("LAW-ACCEPTS", "dynamic", "points", {"server_passive_opens": pl.lit(0, pl.Int64)}),
    ("LAW-HELD", "readiness", "points", {"idle_held": pl.col("idle_connections") - 1}),
    ("LAW-HELD", "c10k", "samples", {"client_established": pl.lit(9, pl.Int64)}),
    ("LAW-DROPS", "dynamic", "points", {"server_listen_drops": pl.lit(-1, pl.Int64)}),
    ("LAW-RETRIES", "c10k", "points",
     {"client_syn_retransmissions": pl.col("server_listen_drops") + 1}),
    ("LAW-RETRIES", "dynamic", "points",
     {"client_syn_retransmissions": pl.col("server_listen_drops") + 1}),
    # Connections are said to be answered at once, though their SYNs went twice.
    ("LAW-RETRY-TIMES", "accept-queue", "times", {"time_us": pl.lit(500, pl.Int64)}),
    ("LAW-QUEUE", "dynamic", "samples", {"accept_queue_connections": pl.lit(99999, pl.Int64)}),
    ("LAW-COUNTED", "dynamic", "points", {"server_passive_opens": pl.lit(None, pl.Int64)}),
    ("LAW-GROWING", "dynamic", "samples",
     {"server_passive_opens": -pl.col("server_passive_opens")}),
    ("LAW-CLOCK", "dynamic", "samples", {"time_us": -pl.col("time_us")}),
    ("LAW-QUANTILES", "dynamic", "points", {"connection_time_min_us": pl.lit(10**8, pl.Int64)}),
    ("LAW-QUANTILES", "c10k", "points",
     {"message_latency_p95_us": pl.col("message_latency_p99_us") + 1}),
    ("LAW-LONGEST", "dynamic", "points",
     {"connection_time_max_us": pl.col("test_duration_us") + 10_000}),
    ("LAW-CPU", "dynamic", "points", {"server_cpu_ns": pl.lit(10**12)}),
    ("LAW-CLIENT-CPU", "c10k", "points", {"client_cpu_us": pl.lit(10**9)}),
    ("LAW-CPU", "overhead", "points", {"server_cpus_idle_us": pl.lit(10**9)}),
    ("LAW-STEADY", "dynamic", "points",
     {"course": pl.lit("drifting"), "course_change": pl.lit(-0.2)}),
    ("LAW-FAIR", "c10k", "points", {"connections_starved": pl.lit(1, pl.Int64)}),
    ("LAW-BYTES", "dynamic", "points",
     {"client_received_bytes": pl.col("replies") * 10,
      "client_received_segments": pl.col("replies")}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("law", "experiment", "table", "columns"),
    FAULTS,
    ids=[f"{law}-{experiment}-{n}" for n, (law, experiment, *_) in enumerate(FAULTS)],
)
def test_a_planted_fault_breaks_the_law_of_it(law, experiment, table, columns):
    before = set(broken(experiment)["law"])
    found = broken(experiment, **planted(experiment, table, **columns))
    assert law not in before - {"LAW-STEADY"}
    of_it = found.filter(law=law)
    assert len(of_it)
    row = of_it.row(0, named=True)
    below = row["at_least"] is not None and row["seen"] < row["at_least"]
    above = row["at_most"] is not None and row["seen"] > row["at_most"]
    assert below or above


def test_every_law_is_broken_by_a_fault_and_has_a_statement_of_its_own():
    assert {law for law, *_ in FAULTS} == set(laws.LAWS)
    statements = {law.statement for law in laws.LAWS.values()}
    assert len(statements) == len(laws.LAWS) > 20
    assert all(statement.endswith(".") for statement in statements)


def test_bytes_of_a_sound_run_are_no_fault():
    """Each reply in a segment of its own, or all of them packed, and acknowledgements besides."""
    points = sound("dynamic")["points"].with_columns(
        client_received_segments=4 * pl.col("replies") + 3 * pl.col("connections")
    )
    data = pl.col("replies") * pl.col("reply_total_bytes")
    for headers in (40, 60, 80):
        received = (data + headers * pl.col("client_received_segments")).cast(pl.Int64)
        given = laws.evidence(
            "dynamic",
            sound("dynamic") | {"points": points.with_columns(client_received_bytes=received)},
        )
        judged = laws.judgements(given).filter(law="LAW-BYTES")
        assert len(judged) and not judged["broken"].any()


def test_other_connections_of_a_machine_of_its_own_are_no_fault():
    """A host that ssh reaches counts its ssh."""
    more = planted("dynamic", "points", client_active_opens=pl.col("client_active_opens") + 5)
    assert "LAW-OPENS" in set(broken("dynamic", **more)["law"])
    apart = planted("dynamic", "trials", machines=pl.lit(["a", "b"], pl.List(pl.String)))
    assert "LAW-OPENS" not in set(broken("dynamic", **more, **apart)["law"])


def test_a_law_that_lacks_its_counter_judges_nothing():
    lacking = planted("c10k", "points", connections_starved=pl.lit(None, pl.Int64))
    known, without = (
        set(laws.judgements(laws.evidence("c10k", sound("c10k") | frames))["law"])
        for frames in ({}, lacking)
    )
    assert known - without == {"LAW-FAIR"}


def test_points_that_break_a_law_are_left_out_of_figures_and_verdicts():
    points = read("dynamic", "points")
    first = points.row(0, named=True)
    here = pl.all_horizontal(pl.col(name) == first[name] for name in KEY)
    ids = pl.lit(["LAW-CLOCK", "LAW-STEADY"], pl.List(pl.String))
    marked = points.with_columns(laws_broken=pl.when(here).then(ids).otherwise("laws_broken"))
    # Times alone are not read where only they are wrong.
    timed = laws.readable(points, "service_time")
    assert len(laws.readable(marked, "service_time")) == len(timed) - 1
    assert len(laws.readable(marked, "replies")) == len(points)
    chapter = views.Experiment(MINIATURE.name, "dynamic")
    chapter.__dict__["points"] = marked.join(
        chapter.trials.select(*TRIAL, "title", "label"), on=TRIAL
    )
    gone = chapter.lawful_points.join(points.filter(here), on=KEY, how="semi")
    assert gone.is_empty()
    assert chapter.times.collect().join(points.filter(here), on=KEY, how="semi").is_empty()
    assert chapter.valid_points.join(points.filter(here), on=KEY, how="semi").is_empty()
    levels = [name for name in tables.keys("dynamic") if name not in ("variant", "n")]
    selector = {name: first[name] for name in (*levels, RATE) if first[name] is not None}
    with instead({(MINIATURE.name, "dynamic", "points"): marked}):
        known = selecting.values(
            MINIATURE.name, "dynamic", selector | {"statistic": "reply_rate_rps"}
        )
    assert known.blocks == set(
        points.filter(variant=first["variant"], server=first["server"])["n"]
    ) - {first["n"]}


def test_a_run_that_drifts_loses_its_times_and_nothing_else():
    of_times = {"message_latency_p50_us", "message_latency_p95_us"}
    of_counts = {"connections_held", "handshake_time_mean_us", "cpu_us_per_reply"}
    points = read("c10k", "points")
    drifting = (pl.col("server") == "webbit") & (pl.col("n") == 2)
    ids = pl.when(drifting).then(pl.lit([laws.STEADY.id])).otherwise(pl.lit([], pl.List(pl.String)))
    marked = points.with_columns(laws_broken=ids)
    selector = {"server": "webbit", "environment": "unthrottled"}
    with instead({(MINIATURE.name, "c10k", "points"): marked}):
        for name in of_times | of_counts:
            known = selecting.values(MINIATURE.name, "c10k", selector | {"statistic": name})
            assert known.blocks == ({1, 3} if name in of_times else {1, 2, 3}), name


def test_a_run_that_drifts_keeps_the_histogram_of_its_handshakes():
    chapter = views.Experiment(MINIATURE.name, "c10k")
    unsteady = chapter.points.join(laws.steady(chapter.points), on=KEY, how="anti")
    of_unsteady = chapter.times.join(unsteady.lazy(), on=KEY, how="semi").collect()
    assert len(unsteady) and "handshake_time" in set(of_unsteady["quantity"])
    assert "latency" not in set(of_unsteady["quantity"])


def test_a_99th_percentile_needs_662_samples():
    """So that the second slowest bounds it: one beyond at most, with a chance of a hundredth."""
    assert needed_samples(0.99) == 662
    assert needed_samples(0.9) == 64
    assert binom.cdf(1, 662, 0.01) <= 0.01 < binom.cdf(1, 661, 0.01)
    # The first percentile is the 99th of what is turned round.
    assert needed_samples(0.01) == 662


def test_littles_law_holds_in_closed_loop_and_each_point_has_a_limit(miniature):
    given = law_findings.evidences(miniature)
    products = law_findings.closed_loop(given)
    assert len(products) > 2 and law_findings.off(products) == 0
    planted = products.with_columns(ratio=pl.col("ratio") * 1.2)
    assert law_findings.off(planted) == len(products)
    shares = law_findings.limited(given)
    assert set(shares["experiment"]) == set(given)
    assert set(shares["limit"]) <= set(limits.LIMITS)
    sums = shares.group_by("experiment").agg(pl.col("share_percent").sum())["share_percent"]
    assert sums.to_list() == pytest.approx([100] * len(given))
