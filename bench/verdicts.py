"""Is the order of two servers on a card, and a capacity by `try`, what was planted?

`./shell python bench/verdicts.py [--times N]`: servers that burn 20 and 80 µs of CPU for each
request are measured by `measure`, one with the other, each in turn the subject, quiet and with
another program on every CPU; servers that burn 200 µs, and that sleep 5 ms, by `try`. It prints how
often the order was right, and how far each capacity was from what its server can do.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
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
    """Print how often the cheaper of two planted servers had the lower cost on their card."""
    made = {name: us for name, us in (("planted-20", 20), ("planted-80", 80))}
    for name, us in made.items():
        folder = ROOT / "servers" / name
        folder.mkdir()
        (folder / "server.py").write_text(SERVER)
        (folder / "server.toml").write_text(TOML.format(name=name, us=us))
    try:
        for busy in (False, True):
            with other_load(busy):
                right = sum(order(time, list(made)) for time in range(times))
            print(
                f"{'busy' if busy else 'quiet'}: {right} of {times} in the right order", flush=True
            )
    finally:
        for name in made:
            shutil.rmtree(ROOT / "servers" / name)


def order(time: int, names: list[str]) -> bool:
    """Return whether the first of two servers costs less on a card; each is the subject in turn."""
    words = ["measure", *(names if time % 2 else names[::-1]), "null", "--name", "planted"]
    subprocess.run(
        [*SHELL, *words, "--minutes", "0.1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=os.environ | {"DEATHMATCH_WAIT_S": "0"},
    )  # fmt: skip
    card = json.loads((ROOT / "paper/planted/card.json").read_text())
    shutil.rmtree(ROOT / "data/planted")
    cost = {row["server"]: row["cpu_us_per_reply"]["median"] for row in card["servers"]}
    verdict = "no result" if card["verdict"].startswith("No result") else "a result"
    print(f"  {verdict}: {cost}", flush=True)
    return cost[names[0]] < cost[names[1]]


class other_load:
    """A busy loop for each CPU, or none."""

    def __init__(self, busy: bool):
        self.count = (os.cpu_count() or 1) if busy else 0

    def __enter__(self) -> None:
        words = [sys.executable, "-c", "while True: pass"]
        self.running = [subprocess.Popen(words) for _ in range(self.count)]

    def __exit__(self, *_: object) -> None:
        for process in self.running:
            process.kill()
            process.wait()


def capacities() -> None:
    """Print what `try` finds of servers of known service times."""
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
