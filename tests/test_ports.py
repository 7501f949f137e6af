"""When a client whose ports are taken opens fewer connections."""

import polars as pl

from deathmatch.analysis import ports

STEP_US, FAST, SLOW = 500_000, 550, 50


def samples(n: int, slow_after: int | None) -> pl.DataFrame:
    """Return 100 samples in which a step opens FAST connections, SLOW ones after so many.

    The load is not yet under way in the first step.
    """
    steps = [SLOW if slow_after is not None and step > slow_after else FAST for step in range(100)]
    steps[1] = 0
    return pl.DataFrame({
        "n": n, "time_us": range(7_000_000, 7_000_000 + 100 * STEP_US, STEP_US),
        "offered_rate_rps": 11_000, "client_active_opens": steps, "client_time_wait": range(100),
    }).with_columns(pl.col("client_active_opens").cum_sum())  # fmt: skip


def test_the_moment_and_the_pace_after_it_are_found():
    (found,) = ports.slowed(samples(1, 40), 1100).to_dicts()
    assert found == {
        "n": 1, "since_us": 41 * STEP_US, "client_time_wait": 41, "opened_rps": 2 * SLOW,
    }  # fmt: skip


def test_a_client_that_keeps_its_pace_to_the_last_sample_is_left_out():
    both = pl.concat([samples(1, None), samples(2, 40)])
    assert ports.slowed(both, 1100)["n"].to_list() == [2]
