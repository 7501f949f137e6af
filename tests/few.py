"""What a load generator has against the answers of a server with one fault."""

import subprocess
import sys
from collections.abc import Iterator
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
# Of the load, what a factor sets.
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
    generator.compact(log, False)
    try:
        fields = generator.parse(generator.read(log), duration_s)
    except Truncated:
        fields = None
    return answers_problem(generator, fields, log.read_text())
