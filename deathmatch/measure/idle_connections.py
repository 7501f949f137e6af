"""Idle connections: held open in keep-alive state beside the load, by a process of the client's.

They are a factor of an experiment (`idle_connections`), so that every server has it. Each has
carried one request, so that the server knows it; none sends another.
"""

import re
import select
import subprocess

from deathmatch.load import registry, roundtrip
from deathmatch.measure.sampler import sockets

FACTOR = registry.IDLE_FACTOR
# A server that looks at every connection at each wait takes 8,000 slowly.
PATIENCE_S = 60
CLOSE_S = 5


def established(port: int) -> int:
    """Return how many connections of the server's port the kernel has as established, by ss(8)."""
    return len(sockets("state", "established", f"sport = :{port}"))


class Idle:
    """Connections that are held from now until `release`."""

    def __init__(self, prefix: list[str], host: str, port: int, load: dict, connections: int):
        """Open them; `prefix` are the words that run a command on the client's side.

        `wrong` is what went wrong, empty if the kernel has them all as established. Raises
        UserError if the program that holds them cannot run.
        """
        self._process = subprocess.Popen(
            [*prefix, *roundtrip.idle_command(host, port, load, connections)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.pid = self._process.pid
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE_S)
        said = self._process.stdout.readline().strip() if ready else f"not in {PATIENCE_S} s"
        held = established(port)
        self.wrong = "" if said == f"idle_connections: {connections}" else said
        if not self.wrong and held < connections:
            self.wrong = f"the kernel has {held} established"
        if ready and not said.startswith("idle_connections: "):
            self._check_ran(said)
        if self.wrong:
            self._process.kill()

    def _check_ran(self, said: str) -> None:
        """Raise UserError if what was said are the last words of a program that cannot run."""
        try:
            status = self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            return
        if status in registry.NOT_RUN:
            raise registry.failure(registry.HOLDER, f"ended with exit status {status}", said, "")

    def release(self) -> int | None:
        """Close them; return how many the server had ended before, None if that is unknown."""
        try:
            said, _ = self._process.communicate(timeout=CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            said, _ = self._process.communicate()
        found = re.search(r"^idle_losses: (\d+)\nend$", said, re.MULTILINE)
        return int(found[1]) if found else None
