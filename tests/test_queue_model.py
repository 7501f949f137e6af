"""The queue model against exact results, and against what no queue may do."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson

from deathmatch.analysis import queue_model as model

PATIENT = float("inf")
SERVICE_S = 0.001


def loss_of_md1k(load: float, places: int) -> float:
    """Return the exact loss of an M/D/1/K queue, from the chain embedded at departures.

    As in Kleinrock's Queueing Systems I (1975), ch. 5; `places` includes the one in service.
    """
    came = poisson(load).pmf(np.arange(places))
    chain = np.zeros((places, places))
    for left in range(places):
        after = max(left - 1, 0)
        chain[left, after : places - 1] = came[: places - 1 - after]
        chain[left, places - 1] = 1 - chain[left].sum()
    values = np.vstack([chain.T - np.eye(places), np.ones(places)])
    stationary = np.linalg.lstsq(values, np.append(np.zeros(places), 1), rcond=None)[0]
    return 1 - 1 / (stationary[0] + load)


@pytest.mark.parametrize("load", [0.7, 1.0, 1.5])
@pytest.mark.parametrize("backlog", [0, 1, 5])
def test_loss_without_retries_is_that_of_md1k(load, backlog):
    gaps = np.random.default_rng(1).exponential(SERVICE_S / load, 60_000)
    made = model.simulate(np.cumsum(gaps), SERVICE_S, backlog, (), PATIENT)
    lost = 1 - made["queued"].mean()
    assert lost == pytest.approx(loss_of_md1k(load, backlog + 2), abs=0.01)


def test_md1k_has_its_known_limits():
    assert loss_of_md1k(0.5, 1) == pytest.approx(0.5 / 1.5)  # Erlang's B formula
    assert loss_of_md1k(2, 200) == pytest.approx(0.5, abs=1e-6)  # overload: 1 - 1/load
    assert loss_of_md1k(0.5, 50) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("backlog", [1, 128])
def test_without_overload_nothing_is_lost(backlog):
    made = model.simulate(model.regular(900, 2), SERVICE_S, backlog)
    assert made["tries"].unique().to_list() == [1]
    assert (made["answer_s"] - made["arrival_s"]).max() == pytest.approx(SERVICE_S)


@pytest.mark.parametrize(
    "places, backlog, room",
    [(model.linux_places, 5, 6), (model.linux_places, 128, 129),
     (model.freebsd_places, 5, 8), (model.freebsd_places, 128, 193)],
)  # fmt: skip
def test_a_queue_holds_what_its_kernel_lets_in(places, backlog, room):
    """All come at once: one is in service, `room` wait, the others are dropped."""
    made = model.simulate([0.0] * 300, SERVICE_S, backlog, (), PATIENT, places)
    assert made["queued"].sum() == 1 + room


def test_a_burst_fits_or_waits_for_its_retry():
    made = model.simulate([0.0] * 10, SERVICE_S, 4)
    # One in service and five in the queue; then three more tries for the rest.
    assert made["tries"].to_list() == [1] * 6 + [2] * 4
    waited = made["answer_s"].round(6).to_list()
    assert waited == [0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 1.001, 1.002, 1.003, 1.004]


def test_overload_is_answered_at_the_rate_of_service():
    made = model.simulate(model.regular(2000, 4), SERVICE_S, 128)
    assert model.reply_rate_rps(made, 4) == pytest.approx(1000, rel=0.01)


def test_a_queue_longer_than_patience_answers_nobody():
    """After the first seconds all that is served has gone."""
    made = model.simulate(model.regular(4000, 10), SERVICE_S, 100_000, timeout_s=2)
    late = made.filter(pl.col("arrival_s") > 1)
    assert late["queued"].all() and late["answer_s"].null_count() == len(late)


def test_impatience_ends_the_retries():
    made = model.simulate([0.0] * 4, 100, 0, timeout_s=5)
    assert made["tries"].to_list() == [1, 1, 3, 3]
    made = model.simulate([0.0] * 4, 100, 0, model.RETRIES_2009_S, timeout_s=5)
    assert made["tries"].to_list() == [1, 1, 2, 2]


@settings(max_examples=50, deadline=None)
@given(
    rate_rps=st.integers(100, 5000), backlog=st.integers(0, 300), burst=st.integers(1, 50),
    timeout_s=st.sampled_from([0.5, 2, 5, 8]), seed=st.integers(0, 9),
)  # fmt: skip
def test_what_no_queue_may_do(rate_rps, backlog, burst, timeout_s, seed):
    service = np.random.default_rng(seed).exponential(SERVICE_S, 97)
    made = model.simulate(model.regular(rate_rps, 1, burst), service, backlog, timeout_s=timeout_s)
    assert len(made) == rate_rps
    took = (made["answer_s"] - made["arrival_s"]).drop_nulls()
    assert (took > 0).all() and (took <= timeout_s + 1e-9).all()
    assert made["tries"].is_between(1, 1 + len(model.RETRIES_S)).all()
    assert made.filter(~pl.col("queued"))["answer_s"].null_count() == (~made["queued"]).sum()
    # One at a time, in the order in which they were queued.
    answered = made["answer_s"].drop_nulls().sort()
    assert (answered.diff().drop_nulls() >= service.min() - 1e-9).all()
    at_once = made.filter(pl.col("tries") == 1)["answer_s"].drop_nulls()
    assert at_once.is_sorted()
