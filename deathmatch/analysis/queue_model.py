"""A listen backlog as a queue: what it predicts for clients that try again.

Connections come at given times. One that finds the accept queue full is dropped, and its client
tries again, as long as it has patience. One server takes them in turn, each for its service
time; what it takes after its client has gone is work lost.
"""

import heapq
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

# Since the first SYN: an initial timeout of 1 s (RFC 6298) or, before 2011, of 3 s (RFC 2988),
# which doubles each time.
RETRIES_S = (1.0, 3.0, 7.0)
RETRIES_2009_S = (3.0, 9.0)

SCHEMA = {"arrival_s": pl.Float64, "tries": pl.Int64, "queued": pl.Boolean, "answer_s": pl.Float64}


def linux_places(backlog: int) -> int:
    """Return how many the accept queue holds: include/net/sock.h, sk_acceptq_is_full.

    One more than the backlog, which is compared with `>` before the next is added.
    """
    return backlog + 1


def freebsd_places(backlog: int) -> int:
    """Return how many FreeBSD 7.2's holds: sys/kern/uipc_socket.c, sonewconn.

    One more than one and a half times the backlog: `so_qlen > 3 * so_qlimit / 2`, in integers,
    before the next is added.
    """
    return 3 * backlog // 2 + 1


def simulate(
    arrivals_s: Sequence[float],
    service_s: float | Sequence[float],
    backlog: int,
    retries_s: Sequence[float] = RETRIES_S,
    timeout_s: float = 5,
    places: Callable[[int], int] = linux_places,
) -> pl.DataFrame:
    """Return one row a connection, in order of arrival, with the columns of SCHEMA.

    `tries`: SYNs sent; `queued`: whether it got into the accept queue, which holds
    `places(backlog)` and the one in service; `answer_s`: when it was answered, null if that
    was not within `timeout_s` of its arrival. `service_s` is one time, or times that are used in
    turn.
    """
    # Lists: an element of an array is an object that is made each time, and slow to compute with.
    service = np.atleast_1d(np.asarray(service_s, dtype=float)).tolist()
    arrivals_s = np.asarray(arrivals_s, dtype=float).tolist()
    tries, queued, answers = _lists(len(arrivals_s))
    events = [(at, n, n) for n, at in enumerate(arrivals_s)]
    order, served, free_s, room = len(events), 0, 0.0, places(backlog)
    waiting: deque[int] = deque()
    heapq.heapify(events)

    def serve_until(now_s: float) -> None:
        nonlocal served, free_s
        while waiting and free_s <= now_s:
            n = waiting.popleft()
            free_s += service[served % len(service)]
            served += 1
            if free_s <= arrivals_s[n] + timeout_s:
                answers[n] = free_s

    while events:
        now_s, _, n = heapq.heappop(events)
        serve_until(now_s)
        tries[n] += 1
        if len(waiting) < room:
            queued[n] = True
            if not waiting:
                free_s = max(free_s, now_s)
            waiting.append(n)
            serve_until(now_s)
        elif tries[n] <= len(retries_s) and retries_s[tries[n] - 1] < timeout_s:
            order += 1
            heapq.heappush(events, (arrivals_s[n] + retries_s[tries[n] - 1], order, n))
    serve_until(float("inf"))
    return pl.DataFrame([arrivals_s, tries, queued, answers], schema=SCHEMA)


def _lists(count: int) -> tuple[list[int], list[bool], list[float | None]]:
    return [0] * count, [False] * count, [None] * count


def regular(rate_rps: float, duration_s: float, burst: int = 1) -> np.ndarray:
    """Return httperf's arrivals: at a fixed rate, `burst` at once as when it was late, in s."""
    number = np.arange(round(rate_rps * duration_s))
    return number // burst * burst / rate_rps


def reply_rate_rps(made: pl.DataFrame, duration_s: float) -> float:
    """Return answers within the offered window over its length."""
    return float((made["answer_s"] <= duration_s).sum() or 0) / duration_s
