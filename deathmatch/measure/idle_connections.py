"""Idle connections: held open in keep-alive state during the load, by a process of the client's.

They are a factor of an experiment (`idle_connections`), so that every server has it. Each has
carried one request, so that the server knows it; none sends another.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deathmatch.builds import clients
from deathmatch.hosts.host import Host
from deathmatch.hosts.process import Process
from deathmatch.hosts.testbed import Installation
from deathmatch.load import registry
from deathmatch.load.generator import WHOLE, Part

FACTOR = registry.IDLE_FACTOR
# A server that looks at every connection at each wait takes 8,000 slowly.
PATIENCE_S = 60
CLOSE_S = 5


@dataclass(frozen=True)
class Idle:
    """Connections that are held until `release`; `problem` is what went wrong, empty if nothing."""

    process: Process
    problem: str

    def release(self) -> int | None:
        """Close them; return how many the server had ended before, None if that is unknown."""
        losses = re.search(r"^idle_losses: (\d+)\nend$", self.process.finish(CLOSE_S), re.MULTILINE)
        return int(losses[1]) if losses else None


def hold(
    client: Host, site: Installation, address: str, port: int, load: Mapping, connections: int,
    part: Part = WHOLE, *, cpus: Sequence[int] = (), sources: Sequence[str] = (),
) -> Idle | None:  # fmt: skip
    """Open a client's part of the idle connections, on those CPUs; return when they are open.

    None if it has no part in so few. Waits PATIENCE_S at most. Raises UserError if the program
    that holds them cannot run.
    """
    holder = registry.generator(registry.HOLDER)
    words = holder.idle_command(address, port, load, connections, part, sources)
    if words is None:
        return None
    process = client.start(site.located(words), cpus=cpus, talk=True)
    line = process.receive(PATIENCE_S)
    answer = f"not in {PATIENCE_S} s" if line is None else line.strip()
    problem = "" if answer == f"idle_connections: {part.share(connections)}" else answer
    if line is not None and not answer.startswith("idle_connections: "):
        _check_ran(process, answer)
    if problem:
        process.kill()
    return Idle(process, problem)


def _check_ran(process: Process, output: str) -> None:
    """Raise UserError if this was the last output of a program that cannot run."""
    status = process.wait(CLOSE_S)
    if status in clients.NOT_RUN:
        problem = f"ended with exit status {status}"
        raise clients.failure(registry.HOLDER, problem, output, "")
