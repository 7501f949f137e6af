"""The stopwatch of a trial's steps: a nested step counts once, and all add up to the whole."""

import pytest

from deathmatch.measure.context import StepTimes


def times_at(*microseconds: int) -> StepTimes:
    """Return a stopwatch with a clock that returns these times in turn."""
    clock = iter(microseconds)
    return StepTimes(lambda: next(clock) * 1000)


def test_steps_add_up_to_the_whole_and_a_nested_one_counts_once():
    times = times_at(0, 5, 7, 8, 20, 21, 30, 40)
    with times.of("warm_up"), times.of("offering"):
        pass
    with times.of("warm_up"):
        pass
    assert times.record() == {"other": 16, "warm_up": 23, "offering": 1}


def test_a_step_that_fails_ends_and_is_counted():
    times = times_at(0, 1, 4, 6)
    with pytest.raises(OSError), times.of("stop"):
        raise OSError
    assert times.record() == {"other": 3, "stop": 3}
