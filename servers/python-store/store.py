"""Holds as many messages as each line of standard input says: store.py STORE BODY_BYTES,
where STORE is one of dict, dicts, packed, list and sqlite.

Answers with JSON: how many it holds, and the bytes they take by Python's or SQLite's own account.
"""

import gc
import json
import os
import sqlite3
import struct
import sys
import time

BODY_BYTES = int(sys.argv[2])


def message(number: int) -> tuple[bytes, int, int, bytes]:
    """Return key (16 bytes), ttl, hide and body, no object shared with another."""
    return b"%016d" % number, time.time_ns(), time.time_ns(), os.urandom(BODY_BYTES)


class Dict:
    def __init__(self) -> None:
        self.held: dict[bytes, tuple[int, int, bytes]] = {}

    def add(self, number: int) -> None:
        key, *rest = message(number)
        self.held[key] = tuple(rest)

    def runtime_bytes(self) -> int:
        parts = ((key, value, *value) for key, value in self.held.items())
        return sys.getsizeof(self.held) + sum(sys.getsizeof(x) for part in parts for x in part)


class Dicts(Dict):
    def add(self, number: int) -> None:
        key, ttl, hide, body = message(number)
        self.held[key] = {"ttl": ttl, "hide": hide, "body": body}

    def runtime_bytes(self) -> int:
        parts = ((key, value, *value.values()) for key, value in self.held.items())
        return sys.getsizeof(self.held) + sum(sys.getsizeof(x) for part in parts for x in part)


class Packed(Dict):
    def add(self, number: int) -> None:
        key, ttl, hide, body = message(number)
        self.held[key] = struct.pack("<QQ", ttl, hide) + body

    def runtime_bytes(self) -> int:
        held = (x for part in self.held.items() for x in part)
        return sys.getsizeof(self.held) + sum(map(sys.getsizeof, held))


class List:
    def __init__(self) -> None:
        self.held: list[tuple[bytes, int, int, bytes]] = []

    def add(self, number: int) -> None:
        self.held.append(message(number))

    def runtime_bytes(self) -> int:
        parts = ((entry, *entry) for entry in self.held)
        return sys.getsizeof(self.held) + sum(sys.getsizeof(x) for part in parts for x in part)


class Sqlite:
    def __init__(self) -> None:
        self.base = sqlite3.connect(":memory:")
        self.base.execute(
            "CREATE TABLE message (key BLOB PRIMARY KEY, ttl INTEGER, hide INTEGER, body BLOB)"
        )

    def add(self, number: int) -> None:
        self.base.execute("INSERT INTO message VALUES (?, ?, ?, ?)", message(number))

    def runtime_bytes(self) -> int:
        self.base.commit()
        pages = self.base.execute("PRAGMA page_count").fetchone()[0]
        return pages * self.base.execute("PRAGMA page_size").fetchone()[0]


def main() -> None:
    stores = {"dict": Dict, "dicts": Dicts, "packed": Packed, "list": List, "sqlite": Sqlite}
    store = stores[sys.argv[1]]()
    held, wanted = 0, 0
    while True:
        for number in range(held, wanted):
            store.add(number)
        held = wanted
        gc.collect()
        print(json.dumps({"messages": held, "runtime_bytes": store.runtime_bytes()}), flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        wanted = int(line)


main()
