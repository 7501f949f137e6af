"""Call chains that perf(1) sampled: read from what it prints, and given to a phase of a request."""

from collections import Counter
from collections.abc import Iterable, Iterator

# No divisor of a usual rate of requests, which would be sampled always at the same place.
SAMPLES_HZ = 3989
KERNEL = 0xFFFF_8000_0000_0000

USER, WAIT, SLEEP, RECEIVE, SEND, INTERRUPT, OTHER = (
    "user", "look at descriptors", "sleep, wake", "receive", "send", "interrupts", "other kernel",
)  # fmt: skip
PHASES = (WAIT, SLEEP, RECEIVE, SEND, INTERRUPT, OTHER, USER)
_ENTRIES = {
    RECEIVE: ("recvfrom", "recvmsg", "read"),
    SEND: ("sendto", "sendmsg", "write", "writev"),
    WAIT: ("poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "io_uring_enter"),
}
# By release, architecture and how the compiler inlined them.
_SYSTEM_CALL = ("__x64_sys_", "__arm64_sys_", "__do_sys_", "__se_sys_", "sys_")
_INTERRUPT = ("asm_sysvec_", "asm_common_interrupt", "el1h_64_irq", "el0t_64_irq")
_RING = {"io_recv": RECEIVE, "io_read": RECEIVE, "io_send": SEND, "io_write": SEND}

Stack = tuple[str, ...]


def read(lines: Iterable[str]) -> Iterator[Stack]:
    """Yield the call chains that `perf script -F ip,sym` printed, from the outermost function.

    Of the kernel's functions only: a sample of the program itself is ().
    """
    chain: list[str] = []
    seen = False
    for line in [*lines, ""]:
        words = line.split(maxsplit=1)
        if not words:
            if seen:
                yield tuple(reversed(chain))
            chain, seen = [], False
            continue
        seen = True
        if int(words[0], 16) >= KERNEL:
            chain.append(words[1].strip() if len(words) > 1 else "[unknown]")


def phase(stack: Stack) -> str:
    """Return to what a call chain belongs, one of PHASES.

    What an interrupt does on top of a system call is the interrupt's; what a packet does that the
    call sends is the call's, the other end's receiving included (one machine).
    """
    if not stack:
        return USER
    if any(name.startswith(_INTERRUPT) for name in stack):
        return INTERRUPT
    for name in stack:
        if name in _RING:
            return _RING[name]
    called = next((_called(name) for name in stack if name.startswith(_SYSTEM_CALL)), None)
    entered = next((name for name, calls in _ENTRIES.items() if called in calls), OTHER)
    if entered == WAIT and any(name in ("schedule", "__schedule") for name in stack):
        return SLEEP
    return entered


def _called(name: str) -> str:
    for prefix in _SYSTEM_CALL:
        name = name.removeprefix(prefix)
    return name


def by_phase(chains: Iterable[Stack]) -> dict[str, int]:
    """Return how many of these call chains belong to each of PHASES."""
    counted = Counter(map(phase, chains))
    return {name: counted[name] for name in PHASES}
