"""How far another host's clock is from ours, and instants that hosts agree on.

Each exchange says: their clock showed `theirs` after we sent at `sent` and before we received at
`received`. So their clock minus ours lies between theirs - received and theirs - sent, whatever
the ways there and back took; many exchanges leave little room.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deathmatch.errors import UserError

LEAD_S = 0.5
"""How far ahead an agreed instant must be, so that every host is ready for it."""


@dataclass(frozen=True)
class Offset:
    """Their clock minus ours, in ns, and its largest error in either direction."""

    ns: int
    bound_ns: int


@dataclass(frozen=True)
class Clocks:
    """The offsets of a host's two clocks: that without steps, and that of the day."""

    monotonic: Offset
    wall: Offset


def offset(exchanges: Sequence[tuple[int, int, int]]) -> Offset:
    """Return the offset that exchanges (sent, theirs, received) agree on, in ns.

    Raises UserError if they contradict each other: a clock was set meanwhile.
    """
    lowest = max(theirs - received for _, theirs, received in exchanges)
    highest = min(theirs - sent for sent, theirs, _ in exchanges)
    if lowest > highest:
        raise UserError(
            f"a clock was set by {lowest - highest} ns or more while two hosts compared theirs",
            remedy="let both be synchronised, or end what sets them, and run again",
        )
    return Offset((lowest + highest) // 2, (highest - lowest + 1) // 2)


def spanning(first: Offset, second: Offset) -> Offset:
    """Return the offset that holds from one measurement to the other, if drift is even."""
    lowest = min(offset.ns - offset.bound_ns for offset in (first, second))
    highest = max(offset.ns + offset.bound_ns for offset in (first, second))
    return Offset((lowest + highest) // 2, (highest - lowest + 1) // 2)


def agreed(now_ns: int, offsets: Mapping[str, Offset], lead_s: float = LEAD_S) -> dict[str, int]:
    """Return one instant, `lead_s` after ours of `now_ns`, on each host's clock.

    ValueError if that is too soon for a message to arrive and a program to get ready.
    """
    if lead_s < LEAD_S:
        raise ValueError(f"an agreed instant must be {LEAD_S} s ahead, not {lead_s} s")
    return {name: now_ns + round(lead_s * 1e9) + offset.ns for name, offset in offsets.items()}
