"""What chapters compute, on small frames whose results are worked out by hand."""

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deathmatch.analysis import (
    accept_queue,
    accepting,
    c10k,
    dynamic,
    judging,
    ledger,
    listen_backlog,
    phrases,
    provenance,
    readiness,
    reply_rates,
    static_files,
    stats,
    storage,
    verdict_words,
)
from deathmatch.analysis.ledger import Entry, Need, Verdict
from deathmatch.analysis.reply_rates import RATE, REPLY
from deathmatch.analysis.stats import Interval

# The accept queue ----------------------------------------------------------------------------

TOP = 5000
C = {"server": "acceptors", RATE: TOP, "configuration": None} | accept_queue.DEFAULTS


def accepted(n: int, variant: str = "v", **more) -> dict:
    """Return a point of the C server: 1,000 connections in 1 s, 200 us of CPU each, none lost."""
    return C | {
        "variant": variant, "n": n, "connections": 1000, "server_cpu_ns": 200_000_000,
        "server_passive_opens": 1000, "duration_us": 1_000_000, "errors_client_timeout": 0,
        "errors_connection_reset": 0, "errors_total": 0, REPLY: 900.0,
        "accept_queue_connections_max": 129, "syn_queue_connections_max": 7,
        "server_listen_drops": 0, "server_listen_overflows": 0, "client_syn_retransmissions": 0,
        "server_syncookies_sent": 0,
    } | more  # fmt: skip


def took(n: int, time_us: int, count: int, variant: str = "v", **more) -> dict:
    key = C | {"variant": variant, "n": n, "quantity": "connection_time"}
    return key | {"time_us": time_us, "count": count} | more


def test_levels_that_are_not_named_are_the_defaults():
    rows = [
        accepted(1), accepted(2, backlog=5), accepted(3, **{RATE: 1}), accepted(4, accept="many"),
        accepted(5, server="node-accept"),
    ]  # fmt: skip
    frame = pl.DataFrame(rows)
    assert accept_queue.at_levels(frame, TOP)["n"].to_list() == [1]
    assert accept_queue.at_levels(frame, TOP, backlog=5)["n"].to_list() == [2]
    assert accept_queue.at_levels(frame, TOP, backlog=None)["n"].to_list() == [1, 2]
    assert accept_queue.at_levels(frame, TOP, accept=None)["n"].to_list() == [1, 4]


def test_the_capacity_is_that_of_all_trials_together():
    slow = accepted(2, server_cpu_ns=400_000_000)
    slower = accepted(3, server_cpu_ns=900_000_000)
    frame = pl.DataFrame([accepted(1), slow, slower])
    assert accept_queue.capacity_rps(frame) == 3000 / 1.5
    assert accept_queue.capacity_rps(frame.clear()) is None


def test_where_connections_wait():
    at = C | {"variant": "v", "n": 1, "syn_queue_connections": 3}
    rows = [
        at | {"time_us": 9_000_000, "server_established": 140, "accept_queue_connections": 129},
        # Counters are read one after another: more may wait than are established.
        at | {"time_us": 9_500_000, "server_established": 1, "accept_queue_connections": 2},
        at | {"time_us": 0, "server_established": 1, "accept_queue_connections": 0, "n": 2},
    ]
    found = accept_queue.waiting(pl.DataFrame(rows), TOP).sort("time_s", "place")
    assert found.select("time_s", "place", "connections").rows() == [
        (0.0, "SYN queue", 3), (0.0, "accept queue", 129), (0.0, "application", 11),
        (0.5, "SYN queue", 3), (0.5, "accept queue", 2), (0.5, "application", 0),
    ]  # fmt: skip


def test_shares_of_connection_times_are_of_all_offered():
    points = pl.DataFrame([accepted(1)])
    # Of another trial, which is left out, and of this: 900 answered of 1,000 offered.
    times = pl.DataFrame([
        took(1, 49_999, 600), took(1, 50_000, 200), took(1, 1_010_000, 100), took(2, 10, 99),
    ])  # fmt: skip
    shares = accept_queue.time_shares(points, times, 50)
    assert dict(shares.rows()) == {0.0: 60.0, 0.05: 20.0, 1.0: 10.0}
    assert accept_queue.share_between(shares, 0.05, 1.0) == 20
    assert accept_queue.share_between(shares, 0, 1.05) == 90
    assert accept_queue.share_between(shares, 1.05, 9) == 0


def test_request_retries_follow_each_syn():
    times_s = accept_queue.request_retries_s(2)["time_s"].to_list()
    assert times_s == pytest.approx([0.2, 0.4, 0.8, 1.6, 1.2, 1.4, 1.8])


def test_account_and_losses_of_one_variant():
    lossy = accepted(
        1, client_syn_retransmissions=30, server_listen_drops=50, server_listen_overflows=40,
        server_syncookies_sent=5,
    )  # fmt: skip
    points = pl.DataFrame([lossy, accepted(2, "short", backlog=5, errors_total=10)])
    times = pl.DataFrame([
        took(1, 100, 970), took(1, 1_000_100, 30), took(2, 100, 990, "short", backlog=5),
    ])  # fmt: skip
    account = accept_queue.account(points, times, TOP)
    mine = account.filter(variant="backlog 128")
    assert dict(mine.select("outcome", "share_percent").rows()) == {
        "at once": 97.0, "after 1 retry": 3.0, "after 2 retries": 0.0, "after 3 retries": 0.0,
        "timed out": 0.0, "reset": 0.0,
    }  # fmt: skip
    assert account["variant"].unique().sort().to_list() == ["backlog 128", "backlog 5"]
    short, full = accept_queue.losses(points, times, TOP).to_dicts()
    assert (short["variant"], short["retries_implied"]) == ("backlog 5", None), "some gave up"
    assert full == {
        "variant": "backlog 128", "trials": 1, "accept_queue": 129, "syn_queue": 7,
        # 50 drops - 40 overflows; 30 retries - those 10; 40 overflows - those 20.
        "syns_syn_queue": 1.0, "syns_accept_queue": 2.0, "acks_accept_queue": 2.0,
        "server_syncookies_sent": 0.5, "retries_counted": 3.0, "retries_implied": 3.0,
    }  # fmt: skip


def test_a_queue_holds_what_its_kernel_lets_in():
    assert [accepting.linux_places(backlog) for backlog in (5, 128)] == [6, 129]
    assert [accepting.freebsd_places(backlog) for backlog in (5, 128)] == [8, 193]


def test_chance_of_difference_of_runs():
    same = pl.DataFrame({RATE: [1, 1, 2, 2], "value": [10.0, 10, 70, 70]})
    assert accept_queue.chance_of_difference(same, 0.05, 3, 1000) == 0
    # Of two single runs at 90 % and 110 % of the mean, two draws differ half of the time.
    apart = pl.DataFrame({RATE: [1, 1], "value": [90.0, 110.0]})
    chance = accept_queue.chance_of_difference(apart, 0.05, 1, 20_000)
    assert chance == pytest.approx(0.5, abs=0.02)


def test_ways_of_accepting():
    node = {"server": "node-accept", "configuration": "loop", "accept": None, "schedulers": None}
    points = pl.DataFrame([
        accepted(1, "c"), accepted(1, "node", **node, connections=500, errors_total=300),
    ])  # fmt: skip
    times = pl.DataFrame([
        took(1, 4_000, 600, "c"), took(1, 1_000_000, 400, "c"), took(1, 7_000, 200, "node", **node),
    ])  # fmt: skip
    sample = {"n": 1, RATE: TOP, "server_established": 140, "accept_queue_connections": 129}
    samples = pl.DataFrame(
        [
            sample | {"server": "acceptors", "variant": "c"},
            sample | {"server": "acceptors", "variant": "c", "server_established": 200},
            sample | {"server": "node-accept", "variant": "node"},
        ]
    )
    found = accept_queue.ways_of_accepting(points, times, samples, TOP).sort("way")
    assert found.select("way", *accept_queue.WAY_MEASURES).rows() == [
        ("C, one", 900.0, 60.0, 0.0, 4.0, 71, 129),
        # More than half had no answer: there is no median time.
        ("Node.js, all that wait (20.2)", 900.0, 40.0, 60.0, None, 11, 129),
    ]
    assert accept_queue.way_ratio(found, "C, one", "C, many", "replies_rps").trials == 0


@given(st.dictionaries(st.integers(0, 9_000_000), st.integers(1, 30), max_size=8),
       st.integers(0, 40), st.integers(0, 40))  # fmt: skip
def test_each_connection_has_one_outcome(times_us, timed_out, reset):
    answered = sum(times_us.values())
    points = pl.DataFrame({
        "server": ["x"], "connections": [answered + timed_out + reset + 1],
        "errors_client_timeout": [timed_out], "errors_connection_reset": [reset],
    })  # fmt: skip
    rows = [("x", "connection_time", time_us, count) for time_us, count in times_us.items()]
    schema = {"server": pl.String, "quantity": pl.String, "time_us": pl.Int64, "count": pl.Int64}
    times = pl.DataFrame(rows, schema=schema, orient="row")
    found = accepting.outcomes(points, times, ["server"])
    assert found["outcome"].to_list() == accepting.OUTCOMES
    assert found["connections"].sum() == answered + timed_out + reset
    late = sum(count for at_us, count in times_us.items() if at_us >= 1_000_000)
    assert found.filter(pl.col("outcome").str.starts_with("after"))["connections"].sum() == late


# The listen backlog --------------------------------------------------------------------------


def test_backlogs_are_compared_at_a_rate_at_which_all_count():
    points = pl.DataFrame(
        {"n": 1, "variant": f"backlog={backlog}", RATE: rate}
        for backlog, rate in ((1, 10), (1, 20), (128, 10), (128, 20), (128, 30))
    )
    assert listen_backlog.top_rate(points) == 20
    assert listen_backlog.top_rate(points.clear()) is None


def test_slower_shares_count_those_never_answered():
    points = pl.DataFrame({"backlog": [5, 5, 128], "connections": [60, 40, 10]})
    times = pl.DataFrame({
        "backlog": [5, 5, 5, 128], "time_us": [100, 1000, 100, 100], "count": [50, 30, 10, 10],
    })  # fmt: skip
    found = listen_backlog.slower_shares(points, times, [50, 100, 1000])
    assert found.columns == ["backlog", "time_ms", "slower_percent"]
    assert [(b, at, round(share, 9)) for b, at, share in found.rows()] == [
        # Ten of 100 had no answer; with 128, none was slower than 0.1 ms.
        (5, 0.05, 100.0), (5, 0.1, 40.0), (5, 1.0, 10.0), (128, 0.05, 100.0),
    ]  # fmt: skip


def test_losses_are_medians_over_trials_and_the_longest_queue():
    points = pl.DataFrame({
        "backlog": 5, "connections": [100, 100, 100], "server_listen_overflows": [0, 10, 90],
        "client_syn_retransmissions": [0, 20, 30], "errors_total": [1, 2, 9],
        "connection_time_median_us": [100, 300, 200],
    })  # fmt: skip
    samples = pl.DataFrame({
        "backlog": [5, 5], "accept_queue_limit": [5, 5], "accept_queue_connections": [6, 2],
    })  # fmt: skip
    (row,) = listen_backlog.losses(points, samples).to_dicts()
    assert row == {
        "backlog": 5, "trials": 3, "overflows_per_connection": 0.1, "retries_per_connection": 0.2,
        "failed_percent": 2.0, "median_ms": 0.2, "accept_queue_limit": 5,
        "accept_queue_connections": 6,
    }  # fmt: skip


def test_a_cap_is_compared_with_no_cap_and_with_a_backlog_of_its_length():
    rows = [
        (1024, 128, 1, 300.0),
        (1024, 4096, 1, 600.0),
        (128, 4096, 1, 400.0),
        (128, 128, 1, 9.0),
    ]
    points = pl.DataFrame(rows, schema=["backlog", "somaxconn", "n", REPLY], orient="row")
    clipped, equal = listen_backlog.cap_ratios(points)
    assert (clipped.estimate, equal.estimate) == (0.5, 0.75)


def test_rates_in_overload_stand_with_the_plateaus_of_the_graphs():
    points = pl.DataFrame({
        "schedulers": ["one", "one"], "backlog": [5, 5], "n": [1, 1], RATE: [1000, 2000],
        REPLY: [1000.0, 1500.0],
    }).with_columns(pl.lit(2000).alias(reply_rates.TOP))  # fmt: skip
    walkin = pl.DataFrame({
        "system": "Yucan", "statistic": "plateau", "place": "post: backlog graphs",
        "schedulers": ["one", "all"], "backlog": [5, 128], "value": [2000.0, 9000.0],
    })  # fmt: skip
    found = listen_backlog.in_overload(points, walkin)
    assert found.select("variant", "overload_rps", "published_rps").rows() == [
        ("one scheduler, backlog 5", 1500.0, 2000.0),
        ("all schedulers, backlog 128", None, 9000.0),
    ]


# Readiness -----------------------------------------------------------------------------------


def served(idle: int, n: int, cpu_us: float, mechanism: str = "poll", **more) -> dict:
    """Return a point at 1,000 requests a second for 1 s, each for so much CPU."""
    return {
        "title": "C", "server": "c", "variant": f"{mechanism}-{idle}", "readiness": mechanism,
        "idle_connections": idle, "n": n, RATE: 1000, "duration_us": 1_000_000, "replies": 1000,
        "server_cpu_ns": round(cpu_us * 1e6), "client_cpu_total_percent": 50.0,
        "client_limited": False, "report": "whole", REPLY: 1000.0,
    } | more  # fmt: skip


def test_points_that_were_not_served_say_no_cost():
    rows = [
        served(0, 1, 20), served(0, 2, 20, replies=900), served(0, 3, 20, **{RATE: 2000}),
        served(0, 4, 20, client_limited=True), served(0, 5, 20, **{RATE: 0}),
        served(0, 6, 950),
    ]  # fmt: skip
    found = readiness.steady_points(pl.DataFrame(rows))
    assert found.select("n", "cpu_us", "saturated").rows() == [(1, 20.0, False), (6, 950.0, True)]
    assert readiness.steady_rate(pl.DataFrame(rows)) == 1000
    assert readiness.steady_rate(pl.DataFrame(rows[4:5])) == 0


def levels() -> list[readiness.Level]:
    poll = [served(0, n, 20 + n) for n in (1, 2, 3)]
    poll += [served(500, n, 70 + n) for n in (1, 2, 3)]
    poll += [served(1000, n, 920 + n) for n in (1, 2, 3)]
    epoll = [served(idle, n, 20 + n, "epoll") for idle in (0, 1000) for n in (1, 2, 3)]
    return readiness.cost_levels(readiness.steady_points(pl.DataFrame(poll + epoll)))


def test_what_an_idle_connection_costs():
    found = readiness.at_level(levels(), "C", "poll", 1000)
    assert found.cost_us.estimate == 922 and found.busy_percent == pytest.approx(92.2)
    # 900 us over 1,000 connections, and 850 us over the last 500; in ns.
    assert found.per_idle_ns == Interval(3, 900, 900, 900)
    assert found.step_ns.estimate == 1700
    none = readiness.at_level(levels(), "C", "poll", 0)
    few, many = (Interval(3, low, low, high) for low, high in ((2, 4), (5, 6)))
    words = ("more", "less", "same")
    assert phrases.change(few, many, *words) == "more"
    assert phrases.change(many, few, *words) == "less"
    assert phrases.change(few, replace(few, high=5), *words) == "same"
    assert phrases.change(few, none.per_idle_ns, *words) == phrases.NOT_MEASURED
    assert phrases.change(few, stats.interval([9]), *words) == "same"
    assert none.per_idle_ns == none.step_ns == Interval()
    assert readiness.at_level(levels(), "C", "select", 0).cost_us == Interval()
    assert readiness.most_idle_with_cpu_left(levels(), "C", "poll") == 500
    assert readiness.most_idle_with_cpu_left(levels(), "Perl", "poll") == 0


def test_cost_table_has_mechanisms_in_their_order():
    found = readiness.cost_table(list(reversed(levels())))
    assert found["readiness"].to_list() == ["poll"] * 3 + ["epoll"] * 2
    assert found["idle_connections"].to_list() == [0, 500, 1000, 0, 1000]
    assert found["per_idle"].to_list()[:2] == [None, "100 [100, 100]"]
    assert readiness.cost_table([]).is_empty()


def test_changes_of_epoll_have_a_side():
    known, below, above = readiness.cost_changes(levels())
    assert (len(known), below, above) == (1, [], []), "epoll's is none, poll's does not count"
    rows = [served(0, n, 80 + n, "epoll") for n in (1, 2)]
    rows += [served(9, n, 40 + n, "epoll") for n in (1, 2)]
    cheaper = readiness.cost_levels(readiness.steady_points(pl.DataFrame(rows)))
    assert [level.idle for level in readiness.cost_changes(cheaper)[1]] == [9]


def crashes() -> pl.DataFrame:
    rows = [
        ("select", 1, 4000, "ran", 400, 0), ("select", 1, 6000, "died: signal 6", 1024, 30),
        ("select", 2, 6000, "ran", 1000, 1), ("epoll", 1, 6000, "ran", 3000, 2),
    ]  # fmt: skip
    columns = ["readiness", "n", RATE, "server_state", "server_descriptors_max",
               "errors_connection_refused"]  # fmt: skip
    return pl.DataFrame(rows, schema=columns, orient="row").with_columns(
        title=pl.lit("Tornado"), backlog=pl.lit(128), top_rate_rps=pl.lit(6000),
        errors_connection_reset=pl.lit(0), errors_client_timeout=pl.lit(0),
        **{REPLY: pl.when(pl.col("readiness") == "epoll").then(5000.0).otherwise(pl.col(RATE) / 2)},
    )  # fmt: skip


def test_deaths_and_the_rates_of_them():
    found = readiness.deaths(crashes()).select(
        "readiness", "trials", "died_trials", "from_rps", "descriptors", "errors_connection_refused"
    )
    # Errors only of rates at which it died.
    assert found.rows() == [("epoll", 1, 0, None, 3000, 0), ("select", 2, 1, 6000, 1024, 30)]
    (row,) = readiness.deaths_by_rate(crashes()).to_dicts()
    assert (row["readiness"], row[RATE], row["died"], row["trials"]) == ("select", 6000, 1, 2)
    assert readiness.overload_ratio(crashes(), "Tornado").estimate == pytest.approx(5 / 3)


def test_system_calls_with_the_fewest_and_the_most_idle():
    trials = pl.DataFrame({
        "title": "C", "readiness": "poll", "idle_connections": [8000, 0, 100],
        "syscalls_per_reply": [2.5, 4.0, None], "waits_per_reply": [0.5, 1.0, None],
    })  # fmt: skip
    assert readiness.system_calls(trials).rows() == [("C", "poll", 4.0, 1.0, 8000, 2.5, 0.5)]


# Static files --------------------------------------------------------------------------------


def replied(label: str, n: int, replies: int, **more) -> dict:
    return {
        "label": label, "server": label, "variant": "v", "n": n, RATE: 100, "replies": replies,
        "server_cpu_ns": 10_000_000, "context_switches": 400, "interrupts": 200,
        "server_rss_bytes_max": 5_000_000,
    } | more  # fmt: skip


def test_costs_of_a_reply():
    points = pl.DataFrame([replied("a", 1, 100), replied("a", 2, 200), replied("b", 1, 1000),
                           replied("b", 2, 0)])  # fmt: skip
    of_both = [("b", 1, 10.0, 0.4, 0.2, 5.0), ("a", 1, 100.0, 4.0, 2.0, 5.0)]
    assert static_files.costs(points).rows() == of_both, "of the one round of both"
    assert static_files.cpu_ratio(points, "a", "b").estimate == 10


# Ten thousand WebSockets ---------------------------------------------------------------------


def test_quantiles_count_what_was_due_and_never_came():
    key = {"label": "x", "server": "x", "variant": "v", "schedulers": None, RATE: 10,
           "environment": "unthrottled"}  # fmt: skip
    points = pl.DataFrame([
        key | {"n": 1, "client_limited": False, "messages_due": 100},
        key | {"n": 2, "client_limited": True, "messages_due": 100},
    ])  # fmt: skip
    rows = [(1, 1000, 50), (1, 3000, 30), (2, 7000, 100)]
    times = pl.DataFrame([
        key | {"n": n, "quantity": "latency", "time_us": at_us, "count": count}
        for n, at_us, count in rows
    ])  # fmt: skip
    (row,) = c10k.time_quantiles(times.lazy(), points, "latency").to_dicts()
    assert (row["limited"], row["p50"], row["p75"], row["p99"]) == (False, 1.0, 3.0, None)
    limited = points.with_columns(client_limited=True)
    (row,) = c10k.time_quantiles(times.lazy(), limited, "latency").to_dicts()
    assert (row["limited"], row["p50"], row["p75"]) == (True, 7.0, 7.0), "all trials then"


# Dynamic pages, every CPU, storage, the ledger's cells ---------------------------------------


def answered(label: str, n: int, rate: int, reply: float, **more) -> dict:
    return {
        "server": label.split(",")[0], "title": label.split(",")[0], "label": label, "n": n,
        RATE: rate, reply_rates.TOP: rate, REPLY: reply, "connections": 100, "schedulers": "one",
        "server_rss_bytes_max": 2_000_000, "connection_time_median_us": 1000 * n,
        "connection_time_avg_us": 3000, "response_time_avg_us": 500,
    } | more  # fmt: skip


def test_a_variant_is_compared_with_the_first_of_its_server():
    points = pl.DataFrame([
        answered("a", 1, 100, 40.0), answered("a, all CPUs", 1, 100, 60.0),
        answered("a, poll", 1, 100, 100.0), answered("b", 1, 100, 50.0),
    ])  # fmt: skip
    found = dynamic.variant_ratios(points)
    assert found.select("variant", "against", "median").rows() == [
        ("a, all CPUs", "a", 1.5), ("a, poll", "a", None),
    ]  # fmt: skip


def test_bytes_per_message_are_what_full_has_more_than_empty():
    rows = [(100, 0, 1000, 50_000), (100, 10, 3000, 90_000), (500, 10, 9000, 99_000)]
    points = pl.DataFrame(
        rows, schema=["body_bytes", "messages", "runtime_bytes", "rss_bytes"], orient="row"
    ).with_columns(label=pl.lit("x"), configuration=pl.lit("dict"), server=pl.lit("x"), n=pl.lit(1))
    found = storage.bytes_per_message(points)
    assert found.select("runtime_bytes", "rss_bytes").rows() == [(200.0, 4000.0)]


def decided(verdict: str, direction: str | None = None) -> Verdict:
    needs = (Need("4 CPUs", "1", met=False),)
    return Verdict(verdict, Interval(3, 2.0, 1.9, 2.1), direction=direction, needs=needs)


def test_a_cell_of_the_ledger_has_its_number_only_where_it_was_decided():
    cell = "**replicated**: 2 [1.9, 2.1], n\u00a0=\u00a03"
    assert verdict_words.cell(decided(judging.REPLICATED)) == cell
    assert verdict_words.cell(decided(judging.UNREACHED)) == f"**{judging.UNREACHED}**"
    fragile = replace(decided(judging.REPLICATED), fragile="fragile (Holm)")
    assert verdict_words.cell(fragile) == cell.replace("replicated", "replicated, fragile (Holm)")


def entry_of(then: Verdict, now: Verdict) -> Entry:
    texts = dict.fromkeys(("claim", "place", "role", "experiment", "rule"), "")
    return Entry(**texts, source="Walkin", says="A is faster", statistics=(), published=None,
                 same=False, then=then, now=now)  # fmt: skip


def test_needs_are_named_once_and_only_of_conditions_not_reached():
    unreached = decided(judging.UNREACHED)
    entry = replace(entry_of(unreached, unreached), same=True)
    refuted = replace(entry, says="B is faster", then=decided(judging.NOT), same=False)
    refuted = replace(refuted, now=refuted.then)
    found = ledger.unmet_needs([entry, refuted])
    assert found.rows() == [("Walkin", "A is faster", "4 CPUs", "1")]
    assert ledger.unmet_needs([refuted]).columns == found.columns


# How the sides share a machine --------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ([([0], [1]), ([0, 1], [1])], "one CPU each"),
        ([([0, 1, 2], [3])], "each on CPUs of its own"),
        ([([0], [0])], "on the same CPUs, so that each takes from the other and rates are of both"),
        ([(None, None)], "whose CPUs were not recorded"),
    ],
)
def test_how_client_and_server_share_the_cpus(pairs, told):
    kinds = {"server_cpus": pl.List(pl.Int64), "client_cpus": pl.List(pl.Int64)}
    trials = pl.DataFrame(pairs, schema=kinds, orient="row")
    assert provenance.sides(trials) == told
