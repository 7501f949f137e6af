"""Do a card and `try` find the planted order of two servers, and their planted capacities?

`./shell python bench/verdicts.py [--times N]`: servers that burn 20 and 80 µs of CPU for each
request are measured as by `measure`, without its searches, on the machine as it is and with another
program on every CPU; servers that burn 200 µs, and that sleep 5 ms, by `try`. It prints the number
of rounds with the right order, and each capacity with the planted one.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deathmatch.analysis import card  # noqa: E402
from deathmatch.analysis.views import Experiment  # noqa: E402
from deathmatch.plan import measure_design  # noqa: E402
from deathmatch.quantities.quantity import RATE  # noqa: E402

EXPERIMENT = "single-thread"
TABLE = f"data/planted/{EXPERIMENT}/points.parquet"
LIGHT = (("load_generator", "roundtrip"),)
PLANTED = {"planted-20": 20, "planted-80": 80}
SERVER = """\
import socket, sys, time
kind, us, host, port = sys.argv[1], float(sys.argv[2]), sys.argv[3], int(sys.argv[4])
answer = b"HTTP/1.1 200 OK\\r\\nContent-Length: 12\\r\\nConnection: close\\r\\n\\r\\nHello, world"
listener = socket.create_server((host, port), backlog=128)
while True:
    connection, _ = listener.accept()
    with connection:
        if not connection.recv(4096).startswith(b"GET "):
            continue
        if kind == "sleep":
            time.sleep(us / 1e6)
        else:
            end = time.thread_time_ns() + 1000 * us
            while time.thread_time_ns() < end:
                pass
        connection.sendall(answer)
"""
TOML = """\
title = "{name}"
language = "Python"
source = "ours"
about = "Burns CPU time for each request."
version = "python3 --version"
experiments = ["single-thread"]
run = "python3 {{folder}}/server.py burn {us} {{host}} {{port}}"
[packages]
tools = ["python3"]
debian = ["python3"]
"""
SHELL = [str(ROOT / "shell"), "deathmatch"]


def main() -> None:
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=20)
    times = parser.parse_args().times
    orders(times)
    capacities()


def orders(times: int) -> None:
    """Print the number of rounds in which the cheaper of two planted servers had the lower cost."""
    for name, us in PLANTED.items():
        folder = ROOT / "servers" / name
        folder.mkdir()
        (folder / "server.py").write_text(SERVER)
        (folder / "server.toml").write_text(TOML.format(name=name, us=us))
    file = ROOT / "config/datasets/planted.toml"
    try:
        sides = [measure_design.Side(name, LIGHT) for name in PLANTED]
        rates, duration_s = measure_design.load(EXPERIMENT)
        file.write_text(
            measure_design.text(
                "planted", EXPERIMENT, sides, rates, duration_s, times, 1, card=False
            )
        )
        for busy in (False, True):
            with other_load(busy):
                _run("snakemake", TABLE, "--quiet", "all", "--config", "dataset=planted")
            held = Experiment("planted", EXPERIMENT)
            at = held.points.filter(pl.col(RATE) == max(rates))
            costs = card._costs(held, at).pivot("server", index="n", values="cost_us")
            right = costs.filter(pl.col("planted-20") < pl.col("planted-80"))
            name = "busy" if busy else "quiet"
            print(f"{name}: {len(right)} of {len(costs)} rounds in the right order", flush=True)
            print(costs.select(pl.exclude("n")).describe(), flush=True)
            shutil.rmtree(ROOT / "data/planted")
    finally:
        file.unlink(missing_ok=True)
        for name in PLANTED:
            shutil.rmtree(ROOT / "servers" / name)


def _run(*words: str) -> None:
    environment = os.environ | {"DEATHMATCH_WAIT_S": "0"}
    subprocess.run([str(ROOT / "shell"), *words], env=environment, check=True)


@contextmanager
def other_load(busy: bool) -> Iterator[None]:
    """Run a busy loop on each CPU, or none."""
    words = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(words) for _ in range((os.cpu_count() or 1) if busy else 0)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def capacities() -> None:
    """Print the capacities that `try` finds for servers with known service times."""
    for kind, us in (("burn", 200), ("sleep", 5000)):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "server.py").write_text(SERVER)
            words = ["try", f"python3 server.py {kind} {us} {{host}} {{port}}"]
            text = subprocess.run(
                [*SHELL, *words], capture_output=True, text=True,
                env=os.environ | {"DEATHMATCH_FROM": folder},
            ).stdout  # fmt: skip
        said = re.search(r"capacity is [^.]*", text)
        print(f"{kind} {us} µs, at most {1e6 / us:,.0f}/s: {said[0] if said else text}", flush=True)


if __name__ == "__main__":
    main()
