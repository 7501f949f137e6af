"""A warm-up that opens and closes connections before the first rate, until the pace is steady.

A warm-up that holds its connections runs the code of messages often, but the code of a handshake
only once for each connection; a JIT compiler may still interpret that when ten thousand connections
open. So in each round some connections are opened, echo a few messages and are closed. Each ends
with WebSocket's closing handshake, after which the server should close TCP first (RFC 6455, section
7.1.1), so that TIME_WAIT is on its side and the client's ports are free. If it does not, the number
of rounds is limited by the ports (`rounds_that_fit`).
"""

import tempfile
import time
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from statistics import fmean

from deathmatch.measure import client, many_connections
from deathmatch.measure.context import Context
from deathmatch.plan.record import LEAST_ROUNDS, WINDOW_ROUNDS, last_rate_cps

BOUND = 0.05
# How long a round waits for echoes after its end, so that an overloaded server delays it little.
DRAIN_S = 2
SETTLE_S = 2


def steady(rates_cps: Sequence[float]) -> bool:
    """Return whether the mean of the last WINDOW_ROUNDS rates is within BOUND of that before.

    No trend may be left, so windows are compared, not the spread within one (Georges et al., OOPSLA
    2007). In simulations with 10 % of noise, a steady server is found steady after 10 to 14 rounds,
    and a server that gains 6 % a round in one of 1000 runs. Many programs never become steady
    (Barrett et al., OOPSLA 2017), so the caller must limit the rounds, and record that.
    """
    if len(rates_cps) < LEAST_ROUNDS:
        return False
    before = fmean(rates_cps[-LEAST_ROUNDS:-WINDOW_ROUNDS])
    return before > 0 and abs(last_rate_cps(rates_cps) / before - 1) <= BOUND


def rounds_that_fit(most: int, connections: int, held: int, ports: int) -> int:
    """Return how many rounds, at most `most`, leave enough ports for the connections to be held.

    If the client must close TCP first, its ports are in TIME_WAIT for a minute: each round then
    uses as many ports as connections.
    """
    return max(0, min(most, (ports - held) // connections))


def until_steady(context: Context, asked: dict) -> dict:
    """Open and close connections until the rate is steady, or the rounds or the time are used up.

    `asked` is `churn` of the trial's spec. Returns RecordedChurn's keys. A round ends when all
    connections have opened, have had their echoes and are closed, so that it leaves nothing in the
    server's queues; if the server does not answer, after `round_s`, DRAIN_S, SETTLE_S and a
    second. No round begins after `most_s`.
    """
    began_ns, rates_cps = time.monotonic_ns(), []
    held = round(max(context.spec["rates_rps"]) * context.spec["load"]["interval_s"])
    rounds = rounds_that_fit(asked["rounds"], asked["connections"], held, _ports(context))
    while len(rates_cps) < rounds and not steady(rates_cps):
        # What the last ones left open would open with these.
        _settled(context)
        if time.monotonic_ns() - began_ns > asked["most_s"] * 1e9:
            break
        rates_cps.append(round(_round_cps(context, asked), 1))
    return {
        "connections": asked["connections"],
        "rates_cps": rates_cps,
        "steady": steady(rates_cps),
        "wall_us": (time.monotonic_ns() - began_ns) // 1000,
        "left_established": _settled(context),
        "client_time_wait": sum(
            host.counters()["sockstat"]["TCP tw"] for host in context.clients
        ),
    }  # fmt: skip


def _round_cps(context: Context, asked: dict) -> float:
    """Return the connections opened per second in a round; 0 if none were."""
    own = ("interval_s", "messages", "opening")
    load = {"drain_s": DRAIN_S} | {key: asked[key] for key in own}
    rate_rps = round(asked["connections"] / asked["interval_s"])
    with tempfile.TemporaryDirectory(dir=context.out) as folder:
        log = Path(folder, "churn.txt")
        offered = client.offer(context, rate_rps, asked["round_s"], log, load=load)
        known = client.fields(context, offered, asked["round_s"], log.parent)
    return known["opening_rate_cps"] or 0 if known else 0


def _settled(context: Context) -> int:
    """Wait until the server has no connections, at most SETTLE_S; return how many are left."""
    deadline = time.monotonic() + SETTLE_S
    while True:
        left = max(0, context.established() - context.idle_connections)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def _ports(context: Context) -> int:
    """Return how many source ports the clients have, over all addresses."""
    total = 0
    for host in context.clients:
        addresses = sum(ip_network(source).num_addresses for source in context.sources(host))
        total += many_connections.ports(host) * max(1, addresses)
    return total
