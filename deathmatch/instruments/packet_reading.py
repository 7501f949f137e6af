"""One reading: a server's CPU time for a rate of new connections, with packets charged one way.

Called in a sandbox; see `instruments.packets`.
"""

import time
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts import packets
from deathmatch.hosts.testbed import Testbed
from deathmatch.measure import client, trial
from deathmatch.measure.context import Context, prepare
from deathmatch.plan.trial import Trial

# Each connection with one request: what packets cost a server most.
LOAD = {"requests_per_connection": 1}
WARM_UP_S = 1
# For what both ends still do when the last reply is there.
SETTLE_S = 0.5


def reading(
    one: Trial, bed: Testbed, mode: str, rate_rps: int, duration_s: float, out: Path
) -> dict:
    """Return what a rate cost, from its beginning to its end on this machine's monotonic clock.

    {"began_ns", "ended_ns", "replies", "server_cpu_ns"}: the server's processes alone, not the
    kernel's threads. UserError if the server does not start, or answers less than all.
    """
    packets.charge(bed, mode)
    context = prepare(one, one.spec(), bed, out)
    try:
        running, problem = trial.start(context)
        if problem:
            raise UserError(
                f"server {one.server.name!r} did not start: {problem}\n{running.tail()}"
            )
        client.offer(context, rate_rps, WARM_UP_S, out / "warm-up.txt", load=LOAD)
        before_ns, began_ns = _cpu_ns(context), time.monotonic_ns()
        offered = client.offer(context, rate_rps, duration_s, out / "report.txt", load=LOAD)
        time.sleep(SETTLE_S)
        found = {
            "began_ns": began_ns, "ended_ns": time.monotonic_ns(),
            "replies": client.replies(context, offered, duration_s),
            "server_cpu_ns": _cpu_ns(context) - before_ns,
        }  # fmt: skip
        trial.stop(context, running)
    finally:
        context.end()
    if found["replies"] != round(rate_rps * duration_s):
        raise UserError(
            f"{found['replies']} of {rate_rps * duration_s:.0f} requests were answered",
            f"server {one.server.name!r}, packets {mode}", "take a lower --rate",
        )  # fmt: skip
    return found


def _cpu_ns(context: Context) -> int:
    return sum(context.server.usage(pid)["cpu_ns"] for pid in context.server_pids())
