"""Wrong answers are counted by class, and are no replies of any quantity."""

from types import SimpleNamespace

import polars as pl
import pytest

from deathmatch.plan import files
from deathmatch.quantities.definitions import QUANTITIES
from deathmatch.quantities.quantity import RATE, REPLY, WRONG, of_experiment, only_good

DUE, SECONDS = 2000, 2


def point(**columns) -> pl.DataFrame:
    """A point of 1,000 requests a second, all of which were answered somehow."""
    row = {
        RATE: DUE // SECONDS, "duration_us": SECONDS * 1_000_000, "replies": DUE,
        REPLY: DUE / SECONDS, "server_cpu_ns": DUE * 30_000, "errors_total": 0,
        "errors_client_timeout": 0, "errors_socket_timeout": 0,
    }  # fmt: skip
    return pl.DataFrame([row | columns])


def number(name: str, points: pl.DataFrame) -> float | None:
    return QUANTITIES[name].of_trial(only_good(points))


def test_a_server_that_sheds_half_of_its_load_gains_nothing():
    shed = point(replies_1xx=0, replies_2xx=DUE // 2, replies_5xx=DUE // 2)
    assert number("reply_rate_rps", shed) == number("reply_rate_overload_rps", shed) == 500
    assert number("error_ratio", shed) == number("wrong_ratio", shed) == 0.5
    assert number("cpu_us_per_reply", shed) == pytest.approx(60)


def test_wrong_answers_and_timeouts_are_errors():
    shed = point(replies_5xx=30, errors_total=10, errors_client_timeout=10)
    assert number("timeout_share", shed) == 0.25


def test_good_answers_stay_what_they_were_to_the_last_digit():
    sound = point(replies_5xx=0, replies_2xx=DUE, **{REPLY: 1000.1 / 3})
    found = only_good(sound)
    assert found[WRONG].to_list() == [0]
    assert found.drop(WRONG).equals(sound)


@pytest.mark.parametrize("column", ["errors_answer_different", "messages_mismatched"])
def test_answers_that_a_client_does_not_count_are_not_subtracted_again(column):
    found = only_good(point(**{column: 7}))
    assert (found[WRONG].item(), found["replies"].item()) == (7, DUE)


def test_a_report_that_is_not_whole_has_no_count():
    found = only_good(point(replies=None, replies_5xx=None, **{REPLY: None}))
    assert found[WRONG].to_list() == found["replies"].to_list() == [None]


def test_a_latency_among_lost_messages_is_the_drain_of_its_own_experiment(monkeypatch):
    columns = {"messages_due": 10_000, "message_latency_p50_us": None}
    messages = point(**columns).cast({"message_latency_p50_us": pl.Int64})
    latency = QUANTITIES["message_latency_p50_us"]
    assert latency.of_trial(of_experiment(messages, "c10k")) == 30e6
    other = SimpleNamespace(load_as_written={"drain_s": 7})
    monkeypatch.setattr(files, "experiment", lambda name: other)
    assert latency.of_trial(of_experiment(messages, "c10k")) == 7e6
