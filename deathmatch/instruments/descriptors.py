"""What does a wait cost, by the descriptors that idle? `./shell deathmatch descriptors NAME`.

Times select(2), poll(2) and epoll_wait(2) over more and more idle connections, and writes
data/descriptors/NAME.json. Each repetition is a life of its own in a sandbox.
"""

import argparse
import json
from collections.abc import Iterator

from deathmatch.errors import UserError
from deathmatch.hosts import testbed
from deathmatch.hosts.host import Local
from deathmatch.instruments import instrument
from deathmatch.instruments import waits as measure

KIND = "descriptors"
# Up to what a process may have where the limit of open files is 20,000.
IDLE = (0, 16, 64, 250, 500, 1000, 2000, 4000, 8000, 16000)
# What a life takes on an idle machine: opening each connection, all waits over it.
LIFE_S, CONNECTION_S = 1.5, 4e-4


def main(given: argparse.Namespace) -> int:
    """Measure as the command line says; return the exit status."""
    if given.inside:
        cpus = Local().affinity()
        sides = {"server": testbed.cpus("first", cpus), "client": testbed.cpus("last", cpus)}
        found = measure.life(levels(given.most), given.repetitions, sides)
        given.inside.write_text(json.dumps(found))
        return 0
    check(given)
    wanted, able = levels(given.most), measure.most_idle()
    idle = [count for count in wanted if count <= able]
    if idle != wanted:
        print(f"at most {idle[-1]:,} descriptors: the limit of open files leaves {able:,}")
    expected_s = given.repetitions * (LIFE_S + CONNECTION_S * sum(idle))
    print(f"{given.repetitions} lives of up to {idle[-1]:,} idle connections: "
          f"{expected_s / 60:.1f} min or more", flush=True)  # fmt: skip
    about = instrument.about() | {"cache_bytes": measure.CACHE_BYTES, "sleep_s": measure.SLEEP_S}
    instrument.keep(KIND, given.name, about, readings(idle[-1], given.repetitions))
    return 0


def levels(most: int) -> list[int]:
    """Return the numbers of idle descriptors up to `most`."""
    return [count for count in IDLE if count <= most]


def check(given: argparse.Namespace) -> None:
    """Raise UserError for a name that is no file's, or a number that makes no sense."""
    instrument.check_name(given.name)
    instrument.check_least(given, repetitions=1, most=IDLE[1])


def readings(most: int, repetitions: int) -> Iterator[dict]:
    """Run each life in a sandbox and return its readings; UserError if one fails."""
    with instrument.folder() as folder:
        for repetition in range(1, repetitions + 1):
            file = folder / f"{repetition}.json"
            words = ["inside", "--most", str(most), "--repetitions", str(repetition)]
            status = instrument.inside(KIND, words, file)
            if status != 0:
                where = f"repetition {repetition}"
                raise UserError(f"the waits were not measured (exit status {status})", where)
            print(f"  {repetition} of {repetitions}", flush=True)
            yield from json.loads(file.read_text())
