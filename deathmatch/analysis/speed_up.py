"""The speed-up that more CPUs give a server whose workers share a lock, exactly."""


def of_lock(workers: int, locked: float) -> float:
    """Return how many times as much as one worker so many answer, each with a CPU of its own.

    `locked` is the share of a request's work that is done under the one lock. Work outside and
    under it is distributed exponentially, so the workers are the customers of a closed network of a
    delay and one queue, which mean value analysis solves exactly (Reiser and Lavenberg 1980).
    """
    waiting, speed = 0.0, 0.0
    for customers in range(1, workers + 1):
        in_queue = locked * (1 + waiting)
        speed = customers / (1 - locked + in_queue)
        waiting = speed * in_queue
    return speed
