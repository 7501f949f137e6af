"""The functions of the chapters, on small frames whose results are computed by hand."""

from dataclasses import replace

import polars as pl
import pytest

from deathmatch.analysis import (
    accept_queue,
    by_trial,
    judging,
    ledger,
    listen_backlog,
    phrases,
    readiness,
    searched,
    stats,
)
from deathmatch.analysis.ledger import Entry, Need, Verdict
from deathmatch.analysis.reply_rates import RATE, REPLY
from deathmatch.analysis.stats import Interval
from deathmatch.capacity_search import search
from deathmatch.quantities.definitions import (
    BYTES_PER_MESSAGE,
    CPU_PER_REPLY,
    OWN_BYTES_PER_MESSAGE,
    SWITCHES_PER_REPLY,
)

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
    assert accept_queue.capacity_rps(frame[:2]) == accept_queue.capacity_rps(frame) == 5000
    assert accept_queue.at_levels(frame, TOP, backlog=5)["n"].to_list() == [2]
    assert accept_queue.at_levels(frame, TOP, backlog=None)["n"].to_list() == [1, 2]
    assert accept_queue.at_levels(frame, TOP, accept=None)["n"].to_list() == [1, 4]


def test_shares_of_connection_times_are_of_all_offered():
    points = pl.DataFrame([accepted(1)])
    # The second trial is left out; in the first, 900 of 1,000 offered were answered.
    times = pl.DataFrame([
        took(1, 49_999, 600), took(1, 50_000, 200), took(1, 1_010_000, 100), took(2, 10, 99),
    ])  # fmt: skip
    shares = accept_queue.time_shares(points, times, 50)
    assert dict(shares.rows()) == {0.0: 60.0, 0.05: 20.0, 1.0: 10.0}
    between = [accept_queue.share_between(shares, *ends) for ends in ((0.05, 1), (0, 1.05), (2, 9))]
    assert between == [20, 90, 0]


def test_account_and_losses_of_one_variant():
    """Which outcome a connection has and what was dropped where: test_accept_queue.py."""
    lossy = accepted(
        1, client_syn_retransmissions=30, server_listen_drops=50, server_listen_overflows=40,
        server_syncookies_sent=5,
    )  # fmt: skip
    points = pl.DataFrame([lossy, accepted(2, "short", backlog=5, errors_total=10)])
    times = pl.DataFrame([
        took(1, 100, 970), took(1, 1_000_100, 30), took(2, 100, 990, "short", backlog=5),
    ])  # fmt: skip
    account = accept_queue.account(points, times, TOP)
    late = account.filter(outcome="after 1 retry")
    assert dict(late.select("variant", "share_percent").rows()) == {
        "backlog 5": 0, "backlog 128": 3.0,
    }  # fmt: skip
    short, full = accept_queue.losses(points, times, TOP).to_dicts()
    assert (short["variant"], short["retries_implied"]) == ("backlog 5", None), "some gave up"
    assert full == {
        "variant": "backlog 128", "trials": 1, "accept_queue": 129, "syn_queue": 7,
        # 50 drops - 40 overflows; 30 retries - those 10; 40 overflows - those 20.
        "syns_syn_queue": 1.0, "syns_accept_queue": 2.0, "acks_accept_queue": 2.0,
        "server_syncookies_sent": 0.5, "retries_counted": 3.0, "retries_implied": 3.0,
    }  # fmt: skip


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


# The listen backlog --------------------------------------------------------------------------


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


def test_rates_in_overload_stand_with_the_plateaus_of_the_graphs():
    probes = pl.DataFrame({"backlog": [5, 5], "n": [1, 2], REPLY: [1400.0, 1600.0]})
    walkin = pl.DataFrame({
        "system": "Yucan", "statistic": "plateau", "place": "post: backlog graphs",
        "schedulers": ["one", "one", "all"], "backlog": [5, 256, 128], "value": [2e3, 3e3, 9e3],
    })  # fmt: skip
    found = listen_backlog.against_post(probes, walkin)
    assert found.select("variant", "overload_rps", "published_rps").rows() == [
        ("backlog 5", 1500.0, 2000.0), ("backlog 256", None, 3000.0),
    ]  # fmt: skip


def test_connections_without_an_answer_are_counted_by_cap_rate_and_length():
    at = {"server": "yucan", "somaxconn": 128, "backlog": 1, RATE: 10, "duration_us": 5_000_000}
    points = pl.DataFrame([
        at | {"n": n, "connections": 100, "errors_total": lost, REPLY: 9.0}
        for n, lost in ((1, 4), (2, 8), (3, 5))
    ])  # fmt: skip
    longer = points.with_columns(duration_us=pl.lit(10_000_000, pl.Int64))
    first, second = listen_backlog.unanswered(pl.concat([points, longer])).to_dicts()
    assert (first["duration_s"], second["duration_s"]) == (10, 5)
    assert [second[name] for name in ("trials", "least", "median", "most")] == [3, 4, 5, 8]


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


def test_the_cost_of_an_idle_connection():
    found = readiness.at_level(levels(), "C", "poll", 1000)
    assert found.cost_us.estimate == 922 and found.busy_percent == pytest.approx(92.2)
    # 900 us over 1,000 connections, and 850 us over the last 500; in ns.
    assert found.per_idle_ns == Interval(3, 900, 900, 900)
    assert found.step_ns.estimate == 1700
    none = readiness.at_level(levels(), "C", "poll", 0)
    assert none.per_idle_ns == none.step_ns == Interval()
    assert readiness.at_level(levels(), "C", "select", 0).cost_us == Interval()
    assert readiness.most_idle_with_cpu_left(levels(), "C", "poll") == 500
    table = readiness.cost_table(list(reversed(levels())))
    assert table["readiness"].to_list() == ["poll"] * 3 + ["epoll"] * 2
    assert table["idle_connections"].to_list() == [0, 500, 1000, 0, 1000]
    assert table["per_idle"].to_list()[:2] == [None, "100 [100, 100]"]


def test_two_intervals_differ_where_they_have_nothing_in_common():
    few, many = (Interval(3, low, low, high) for low, high in ((2, 4), (5, 6)))
    others = (many, replace(many, low=4), stats.interval([9]), Interval())
    said = [phrases.change(few, other, "more", "less", "same") for other in others]
    assert said == ["more", "same", "same", phrases.NOT_MEASURED]
    assert phrases.change(many, few, "more", "less", "same") == "less"


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
    costs = (CPU_PER_REPLY, SWITCHES_PER_REPLY)
    found = by_trial.medians(points.filter(pl.col("replies") > 0), costs, ["label"])
    of_both = [("a", 1, 100.0, 4.0), ("b", 1, 10.0, 0.4)]
    assert found.rows() == of_both, "of the one round of both"
    assert by_trial.ratio(points, CPU_PER_REPLY, "a", "b").estimate == 10


# Dynamic pages, storage, the ledger's cells ---------------------------------------


def searched_for(label: str, n: int, capacity_rps: float | None, **more) -> dict:
    """Return the last probe of a search."""
    return {
        "server": label.split(",")[0], "variant": label, "label": label, "n": n,
        "outcome": search.FOUND if capacity_rps else search.CLIENT, "capacity_rps": capacity_rps,
        "duration_us": 500_000,
    } | more  # fmt: skip


def test_a_variant_is_compared_with_the_first_of_its_server():
    probes = pl.DataFrame([
        searched_for("a", 1, 40.0), searched_for("a, all CPUs", 1, 60.0),
        searched_for("a, poll", 1, None), searched_for("b", 1, 50.0),
    ])  # fmt: skip
    found = searched.variant_ratios(probes)
    assert found.select("variant", "against", "median").rows() == [("a, all CPUs", "a", 1.5)]


def test_failures_at_a_multiple_of_the_capacity_are_of_what_was_due():
    at = {"server": "a", "step": search.OVERLOAD, "capacity_share": 2.5, "client_limited": False}
    probes = pl.DataFrame([
        at | {"due": 100, "replies": 60, "errors_total": 40, "errors_client_timeout": 38},
        at | {"due": 100, "replies": 100, "errors_total": 0, "errors_client_timeout": 0},
        at | {"due": 100, "replies": 0, "errors_total": 9, "errors_client_timeout": 0}
        | {"client_limited": True},
    ])  # fmt: skip
    (row,) = searched.failures(probes, ["server"], 2.5).to_dicts()
    assert row == {"server": "a", "trials": 2, "failed_percent": 20, "timeout_percent": 95}
    assert searched.failures(probes, ["server"], 0.8).is_empty()


def test_bytes_per_message_are_what_full_has_more_than_empty():
    rows = [(100, 0, 1000, 50_000), (100, 10, 3000, 90_000), (500, 10, 9000, 99_000)]
    points = pl.DataFrame(
        rows, schema=["body_bytes", "messages", "runtime_bytes", "rss_bytes"], orient="row"
    ).with_columns(label=pl.lit("x"), configuration=pl.lit("dict"), server=pl.lit("x"), n=pl.lit(1))
    numbers = [
        by_trial.values(points.filter(body_bytes=100), account, ["label"])[account.name].to_list()
        for account in (OWN_BYTES_PER_MESSAGE, BYTES_PER_MESSAGE)
    ]
    assert numbers == [[200.0], [4000.0]]


def test_needs_are_named_once_and_only_of_conditions_not_reached():
    texts = dict.fromkeys(("claim", "place", "role", "experiment", "rule"), "")
    needs = (Need("4 CPUs", "1", met=False),)
    unreached, refuted = (Verdict(word, needs=needs) for word in (judging.UNREACHED, judging.NOT))
    entries = [
        Entry(**texts, source="Walkin", says=says, statistics=(), published=None, same=same,
              then=verdict, now=verdict)
        for says, same, verdict in (("A is faster", True, unreached), ("B is", False, refuted))
    ]  # fmt: skip
    found = ledger.unmet_needs(entries)
    assert found.rows() == [("Walkin", "A is faster", "4 CPUs", "1")]
