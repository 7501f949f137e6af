"""How long each step of a trial took: `steps_us` of its record."""

import contextlib
import time
from collections.abc import Callable, Iterator


class StepTimes:
    """A stopwatch that always runs, for one step at a time.

    Steps may be nested: while an inner one runs, the outer one stands still. So the times add up to
    the time since the stopwatch was made; what is in no step is `other`. The names are the fields
    of `plan.record.RecordedSteps`. `clock` returns nanoseconds.
    """

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        self._ns: dict[str, int] = {}
        self._running = "other"
        self._since_ns = clock()

    @contextlib.contextmanager
    def of(self, step: str) -> Iterator[None]:
        """Count the time of the block for a step."""
        outer = self._running
        self._switch(step)
        try:
            yield
        finally:
            self._switch(outer)

    def record(self) -> dict[str, int]:
        """Return the microseconds of each step so far."""
        self._switch(self._running)
        return {step: ns // 1000 for step, ns in self._ns.items()}

    def _switch(self, step: str) -> None:
        now_ns = self._clock()
        self._ns[self._running] = self._ns.get(self._running, 0) + now_ns - self._since_ns
        self._running, self._since_ns = step, now_ns
