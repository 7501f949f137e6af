"""What keeps a server from filling the machine's disk or memory while its trial runs."""

import threading
from collections.abc import Callable

from deathmatch.hosts.host import Host
from deathmatch.hosts.memory import Memory
from deathmatch.measure.server_log import ServerLog

_INTERVAL_S = 0.1
# Looking at every process takes longer than at one file.
_MEMORY_EVERY = 3


class Guard:
    """A thread that looks after the server's log and memory until the `with` block ends.

    `pids` returns the pids of the server's processes on `host` at that moment.
    """

    def __init__(
        self, log: ServerLog, memory: Memory, host: Host, pids: Callable[[], list[int]]
    ) -> None:
        self._log, self._memory, self._host, self._pids = log, memory, host, pids
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> "Guard":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()
        # It may have printed much since the last look.
        self._log.check()

    def _loop(self) -> None:
        looks = 0
        while not self._ended.wait(_INTERVAL_S):
            self._log.check()
            looks += 1
            if self._memory.watched and looks % _MEMORY_EVERY == 0:
                self._memory.watch(self._host, self._pids)
