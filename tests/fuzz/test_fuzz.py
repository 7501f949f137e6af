"""Whatever stands in a file, a report or a message gives a sound value or an error with its place.

    ./shell pytest -m fuzz                                 # some hundred inputs each
    FUZZ_INPUTS=1000000 ./shell pytest -m fuzz -k httperf  # a million

The inputs of a target are always the same. A case that was found is an ordinary test in the module
that reads it.
"""

import os
import signal

import pytest
from fuzz.targets import TARGETS, Target
from hypothesis import HealthCheck, given, settings

INPUTS = int(os.environ.get("FUZZ_INPUTS", "300"))
# A target that takes longer for an input, on however busy a machine, never ends.
HUNG_S = 300


def _hung(*_: object) -> None:
    raise AssertionError(f"it still ran after {HUNG_S} s")


@pytest.mark.fuzz
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_input_gives_a_sound_value_or_an_error_that_says_where(target: Target):
    signal.signal(signal.SIGALRM, _hung)

    @settings(
        max_examples=max(20, INPUTS // target.share), derandomize=True, database=None,
        deadline=None, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(target.inputs)
    def check(one):
        signal.alarm(HUNG_S)
        try:
            target.check(one)
        finally:
            signal.alarm(0)

    check()
