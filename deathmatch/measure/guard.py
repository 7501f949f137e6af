"""What keeps a server from filling the machine's memory where the kernel sets no limit."""

import threading
from collections.abc import Callable

from deathmatch.hosts.host import Host
from deathmatch.hosts.memory import Memory

_INTERVAL_S = 0.3


class Guard:
    """A thread that looks after the server's memory until the `with` block ends, if it must.

    `pids` returns the pids of the server's processes on `host` at that moment.
    """

    def __init__(self, memory: Memory, host: Host, pids: Callable[[], list[int]]) -> None:
        self._memory, self._host, self._pids = memory, host, pids
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> "Guard":
        if self._memory.watched:
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _loop(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            self._memory.watch(self._host, self._pids)
