"""TCP sockets as the kernel lists them, compared with ss(8) and with sockets opened here."""

import re
import socket
import subprocess
from collections.abc import Iterator

import pytest
from conftest import wait_for

from deathmatch.agent import diag
from deathmatch.agent.diag import Listener

V4, V6, BOTH = "127.0.0.1", "::1", "::"


@pytest.fixture(params=[V4, V6, BOTH])
def listener(request) -> Iterator[socket.socket]:
    """A listener of IPv4, of IPv6, or of both at once, with room for three (listen(2))."""
    six = request.param != V4
    try:
        made = socket.create_server(
            (request.param, 0), family=socket.AF_INET6 if six else socket.AF_INET, backlog=3,
            dualstack_ipv6=request.param == BOTH,
        )  # fmt: skip
    except OSError as error:
        pytest.skip(f"no such address here: {error}")
    with made:
        yield made


def ss(*words: str) -> list[list[str]]:
    done = subprocess.run(["ss", "-H", "-n", "-t", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def opened(listener: socket.socket, number: int) -> list[socket.socket]:
    """Return connections to the listener, of the family that its clients have."""
    port = listener.getsockname()[1]
    address = {BOTH: V4}.get(listener.getsockname()[0], listener.getsockname()[0])
    return [socket.create_connection((address, port)) for _ in range(number)]


def test_a_listener_and_its_queue(listener):
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    assert diag.listeners(port) == [Listener(shown, 0, 3)]
    held = opened(listener, 2)
    wait_for(lambda: diag.listeners(port)[0].waiting == 2, "both wait")
    ((_, waiting, limit, address, _),) = ss("-l", f"sport = :{port}")
    assert diag.listeners(port) == [Listener(shown, int(waiting), int(limit))]
    assert address.replace("*", "[::]") == shown
    for each in held:
        each.close()
    # Others may come and go on this machine: those that stay meanwhile are the same.
    asked, seen, again = diag.listeners(), ss("-l"), diag.listeners()
    ours = {one.address for one in asked} & {one.address for one in again}
    # ss names the device of some, and shortens the address of both families.
    theirs = {re.sub(r"%\w+", "", words[3]).replace("*:", "[::]:") for words in seen}
    assert shown in ours <= theirs


def test_connections_by_state(listener):
    port = listener.getsockname()[1]
    states = (diag.ESTABLISHED, diag.SYN_RECEIVED, diag.TIME_WAIT, diag.LISTENING)
    assert [diag.count(state, port) for state in states] == [0, 0, 0, 1]
    held = opened(listener, 3)
    accepted = [listener.accept()[0] for _ in held]
    wait_for(lambda: diag.count(diag.ESTABLISHED, port) == 3, "three are established")
    assert len(ss("state", "established", f"sport = :{port}")) == 3
    # A listener that closes first keeps the port waiting, with it the connection's end.
    for ours, theirs in zip(accepted[:2], held):
        ours.close()
        theirs.close()
    wait_for(lambda: diag.count(diag.TIME_WAIT, port) == 2, "two wait")
    assert len(ss("state", "time-wait", f"sport = :{port}")) == 2
    assert diag.count(diag.ESTABLISHED, port) == 1
    for each in (accepted[2], held[2]):
        each.close()
    wait_for(lambda: diag.count(diag.ESTABLISHED, port) == 0, "none is left")


def test_more_sockets_than_one_answer_holds():
    """A socket takes a hundredth of a message of 32 KB: hundreds come in several messages."""
    with socket.create_server((V4, 0), backlog=500) as listener:
        port = listener.getsockname()[1]
        held = opened(listener, 400)
        wait_for(lambda: diag.count(diag.ESTABLISHED, port) == 400, "all are established")
        for each in held:
            each.close()
    assert diag.count(diag.ESTABLISHED, port) == 0
