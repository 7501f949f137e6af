"""Ask a testbed's hosts what they are like, and measure the links between them.

The two scripts run on the host, by its own Python: this machine, a namespace, another machine.
"""

import contextlib
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts.audit import facts
from deathmatch.hosts.audit.facts import SERVER
from deathmatch.hosts.host import Host
from deathmatch.hosts.process import Process
from deathmatch.hosts.testbed import Testbed

HERE = Path(__file__).parent
# Isolated, so that neither variables nor packages of a user change what it does.
PYTHON = ("python3", "-I", "-S", "-c")
PATIENCE_S = 60


def testbed(
    bed: Testbed, cpus: Mapping[str, Sequence[int]], demand: facts.Demand,
    *, window_s: float = 0, link_s: float = 0, whole: bool = True,
) -> facts.Audit:  # fmt: skip
    """Return what the testbed's hosts and links are like.

    What else runs is looked at for `window_s`, and each link is measured for `link_s`; 0 leaves
    that out. Without `whole`, only what can change between two trials is read: some tens of
    milliseconds for each host. Raises UserError if a host does not answer.
    """
    hosts = {SERVER: bed.server} | {client.name: client for client in bed.clients}
    probes = {
        name: _start(host, "probe.py", _request(bed.side(name).host_address, window_s, whole))
        for name, host in hosts.items()
    }
    read = {name: facts.host(_answer(name, probes[name], window_s)) for name in hosts}
    links = {}
    if link_s:
        for client in bed.clients:
            raw = _link(bed.server, client, bed.address, cpus, link_s)
            links[client.name] = facts.link(raw)
    return facts.Audit(
        testbed=bed.spec.name,
        separate=bed.separate,
        hosts=read,
        links=links,
        cpus={name: list(cpus[name]) for name in hosts},
        demand=demand,
    )


def load(window_s: float) -> facts.Load:
    """Return what runs on this machine in that time, its processes by name."""
    command = [*PYTHON, (HERE / "probe.py").read_text(), _request("", window_s, whole=False)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise _mute("this machine", str(error)) from None
    return facts.load(_parsed("this machine", done.stdout + done.stderr))


def _request(address: str, window_s: float, whole: bool) -> str:
    return json.dumps({
        "address": address, "files": facts.patterns(whole), "window_s": window_s, "whole": whole,
    })  # fmt: skip


def _link(
    server: Host, client: Host, address: str, cpus: Mapping[str, Sequence[int]], seconds: float
) -> dict:
    with _serving(server, address, cpus["server"]) as port:
        if not port.isdecimal():
            return {"failed": f"at the server: {port}"}
        words = ("call", address, port, str(seconds))
        caller = _start(client, "link_probe.py", *words, cpus=cpus[client.name])
        return _answer(client.name, caller, seconds)


@contextlib.contextmanager
def _serving(server: Host, address: str, cpus: Sequence[int]) -> Iterator[str]:
    """Serve one caller until the end of the block; yield the port, or why there is none."""
    process = _start(server, "link_probe.py", "serve", address, cpus=cpus)
    try:
        line = process.receive(PATIENCE_S)
        yield "no answer" if line is None else line.strip()
    finally:
        process.kill()


def _start(host: Host, script: str, *words: str, cpus: Sequence[int] = ()) -> Process:
    command = [*PYTHON, (HERE / script).read_text(), *words]
    try:
        return host.start(command, cpus=cpus, talk=True)
    except OSError as error:
        raise _mute(host.name, str(error)) from None


def _answer(name: str, process: Process, takes_s: float) -> dict:
    """Return the JSON that a script printed as its last line."""
    return _parsed(name, process.finish(PATIENCE_S + takes_s))


def _parsed(name: str, text: str) -> dict:
    last = (text.strip().splitlines() or ["nothing"])[-1]
    try:
        return json.loads(last)
    except ValueError:
        raise _mute(name, last) from None


def _mute(name: str, said: str) -> UserError:
    return UserError(
        f"the host cannot be audited; it said: {said}",
        where=f"host {name}",
        remedy="it needs Python 3.9 or later as python3 on its PATH",
    )
