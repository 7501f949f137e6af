"""Servers with one fault or habit, and the faults that a load generator finds in their answers."""

import itertools
import json
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from conftest import first_line

from deathmatch.builds import clients
from deathmatch.errors import Truncated
from deathmatch.load import registry
from deathmatch.load.generator import BODY
from deathmatch.measure.client import answers_problem
from deathmatch.plan import files

FAULTY = Path(__file__).with_name("servers") / "faulty.py"
# Keys of the load that a factor sets.
FACTORS = {"opening": 10}


@contextmanager
def faulty(fault: str) -> Iterator[int]:
    """Start a server with this fault; yield its port."""
    words = [sys.executable, str(FAULTY), fault, "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield int(first_line(server))
        finally:
            server.kill()


def asked(client: str, experiment: str, port: int, folder: Path, programs: str = "") -> str:
    """Return what a load generator says of its few requests; `programs` is the folder of its own.

    Its output and records are in `folder`.
    """
    generator = registry.generator(client)
    load = files.experiment(experiment).load.model_dump(exclude_none=True) | FACTORS
    rate_rps, duration_s = generator.few(load)
    load |= {"timeout_s": 1, BODY: "Hello, world"}
    words = generator.command("127.0.0.1", port, load, rate_rps, duration_s)
    log = folder / "few.txt"
    with log.open("w") as output:
        words = [f"{programs}{words[0]}", *clients.located(words)[1:]]
        subprocess.run(words, stdout=output, stderr=output, cwd=folder, timeout=60)
    generator.compact(log)
    try:
        fields = generator.parse(generator.read(log), duration_s)
    except Truncated:
        fields = None
    return answers_problem(generator, fields, log.read_text())


def summary_of_wsload(
    connections: dict[str, int], outcomes: dict[str, int], messages: dict[str, int] | None = None,
    limited_by: Sequence[str] = (),
) -> str:  # fmt: skip
    """Return what wsload prints at its end, of these counts; what has none is 0."""
    kinds = ("intended", "sent", "echoed", "lost", "unsent", "mismatched")
    counts = dict.fromkeys(kinds, 0) | (messages or {})
    return json.dumps({
        "connections": {f"{name}_count": count for name, count in connections.items()}
        | {"outcomes_count": outcomes, "most_opening_count": 1, "first_started_us": 1,
           "last_upgraded_us": 9},
        "messages": {f"{name}_count": count for name, count in counts.items()}
        | {"first_mismatched": None},
        "client": {"lag": {"p99_us": 3, "max_us": 9}, "cpu_us": 5, "resident_peak_bytes": 7,
                   "loop_busy_share": 0.5, "step_us": 0, "hold_us": None, "limited_by": limited_by},
    })  # fmt: skip


class Server(socketserver.ThreadingTCPServer):
    """Calls `answer(number, connection, request)` for each request of all its connections."""

    allow_reuse_address = daemon_threads = True
    request_queue_size = 128

    def __init__(self, answer=lambda number, connection, request: connection.sendall(request)):
        self.answer, self.arrivals, self._numbers = answer, [], itertools.count()
        super().__init__(("127.0.0.1", 0), _Handler)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def number(self) -> int:
        self.arrivals.append(time.monotonic())
        return next(self._numbers)

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class _Handler(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            # One segment holds one whole request.
            while data := self.request.recv(4096):
                self.server.answer(self.server.number(), self.request, data)
        except OSError:
            pass
