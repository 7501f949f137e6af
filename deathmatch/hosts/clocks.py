"""The offset of another host's clock from ours, and instants for several hosts.

In each exchange, their clock showed `theirs` after we sent at `sent` and before we received at
`received`. So their clock minus ours is between theirs - received and theirs - sent, whatever the
delays in both directions; many exchanges bound it tightly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deathmatch.errors import UserError

LEAD_S = 0.5
"""How far ahead an agreed instant must be for every host to be ready."""


@dataclass(frozen=True)
class Offset:
    """Their clock minus ours, and the bound of its error in either direction."""

    ns: int
    bound_ns: int


@dataclass(frozen=True)
class Clocks:
    """The offsets of a host's monotonic and wall clocks."""

    monotonic: Offset
    wall: Offset


def offset(exchanges: Sequence[tuple[int, int, int]]) -> Offset:
    """Return the offset that fits all exchanges (sent, theirs, received), in ns.

    Raises UserError if none does: a clock was set meanwhile.
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
    """Return the offset over the time between two measurements, if the drift is uniform."""
    lowest = min(offset.ns - offset.bound_ns for offset in (first, second))
    highest = max(offset.ns + offset.bound_ns for offset in (first, second))
    return Offset((lowest + highest) // 2, (highest - lowest + 1) // 2)


def agreed(now_ns: int, offsets: Mapping[str, Offset], lead_s: float = LEAD_S) -> dict[str, int]:
    """Return the instant `lead_s` after `now_ns` of our clock, on each host's clock.

    Raises ValueError if that is too soon for a message to arrive and a program to start.
    """
    if lead_s < LEAD_S:
        raise ValueError(f"an agreed instant must be {LEAD_S} s ahead, not {lead_s} s")
    return {name: now_ns + round(lead_s * 1e9) + offset.ns for name, offset in offsets.items()}
