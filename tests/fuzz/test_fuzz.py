"""Whatever stands in a file, a report or a message gives a sound value or an error with its place.

    ./shell pytest -m fuzz                                 # some hundred inputs each
    FUZZ_INPUTS=1000000 ./shell pytest -m fuzz -k httperf  # a million

Input number N of a target is always the same; a failure names it. A case that was found is an
ordinary test beside the others of its module.
"""

import os
import random
import signal

import pytest
from fuzz.targets import TARGETS, Target

INPUTS = int(os.environ.get("FUZZ_INPUTS", "300"))
FIRST = int(os.environ.get("FUZZ_FIRST", "0"))
# An input that takes longer, on however busy a machine, never ends.
HUNG_S = 300


def _hung(*_: object) -> None:
    raise AssertionError(f"it still ran after {HUNG_S} s")


@pytest.mark.fuzz
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_input_gives_a_sound_value_or_an_error_that_says_where(target: Target):
    signal.signal(signal.SIGALRM, _hung)
    for number in range(FIRST, FIRST + max(20, INPUTS // target.share)):
        given = target.make(random.Random(f"{target.name} {number}"))
        signal.alarm(HUNG_S)
        try:
            target.check(given)
        except Exception as error:
            pytest.fail(f"input {number} of {target.name}, {str(given)[:2000]!r}: {error!r}")
        finally:
            signal.alarm(0)
