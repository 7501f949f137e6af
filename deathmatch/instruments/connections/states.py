"""The states of a connection that are measured, and how two ends come there.

Each state is reached from the one before it, so that one set of connections goes through a whole
life; `LIVES` are the lives. A step names an end and a verb of `end.End`.
"""

from dataclasses import dataclass

# c10k's message has 33 bytes, in a frame.
REQUEST_BYTES = 64
UNREAD_BYTES = 1024


@dataclass(frozen=True)
class Step:
    """A verb for one end, "server" or "client", with the names of its arguments."""

    end: str
    verb: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """A state by its name; `held` is what the kernel must count there, in `run.counts`.

    The steps may be taken `again` until it does: nobody sends a dropped SYN twice.
    """

    name: str
    about: str
    steps: tuple[Step, ...]
    # A counter of `run.counts`: how many per connection.
    held: dict[str, int]
    again: bool = False


LISTEN = Step("server", "listen", ("address", "port", "connections"))
_CONNECT = Step("client", "connect", ("address", "port", "sources", "connections"))
_ACCEPT = Step("server", "accept", ("connections",))
_WATCH = Step("client", "watch")

ACCEPT_QUEUE = State(
    "accept queue", "complete, not accepted yet; the client's end is watched by an event loop",
    (_CONNECT, _WATCH), {"server_established": 1, "client_established": 1},
)  # fmt: skip
LIVES: dict[str, tuple[State, ...]] = {
    "whole": (
        ACCEPT_QUEUE,
        State(
            "established, unused", "accepted, and watched at both ends; nothing was sent",
            (_ACCEPT,), {"server_established": 1, "client_established": 1},
        ),
        State(
            "established, used", f"idle after a request and an answer of {REQUEST_BYTES} bytes",
            (
                Step("client", "send", ("request",)), Step("server", "receive", ("request",)),
                Step("server", "send", ("request",)), Step("client", "receive", ("request",)),
            ),
            {"server_established": 1, "client_established": 1},
        ),
        State(
            "close-wait", "the client has closed (FIN_WAIT_2), the server has not (CLOSE_WAIT)",
            (Step("client", "close"),), {"server_established": 1, "client_waiting": 1},
        ),
        State(
            "time-wait", "both have closed, the client first (TIME_WAIT)",
            (Step("server", "close"),), {"client_waiting": 1},
        ),
    ),
    "unread": (
        State(
            "unread data", f"{UNREAD_BYTES} bytes have come to the server, which does not read",
            (_CONNECT, _WATCH, _ACCEPT, Step("client", "send", ("unread",))),
            {"server_established": 1, "client_established": 1},
        ),
    ),
    "half-open": (
        State(
            "half open", "the server has had a SYN and waits for the end of the handshake "
            "(SYN_RECV); the client's end is none of a kernel",
            (Step("client", "half_open", ("address", "port", "strangers", "connections")),),
            {"server_syn_received": 1}, again=True,
        ),
    ),
    "syn-sent": (
        State(
            "SYN sent", "the client's end alone: its SYN is not answered (SYN_SENT)",
            (Step("client", "connect", ("nobody", "port", "sources", "connections", "wait")),),
            {"client_sockets": 1},
        ),
    ),
}  # fmt: skip
STATES = {state.name: state for life in LIVES.values() for state in life}
