"""The `netns` testbed: a server's host and those of clients, all on one machine.

It is built inside a sandbox (`sandbox`), whose network namespace becomes the server's; each client
gets another one. One client is connected to the server by a veth pair, several by a bridge that has
the server's address. All of it ends with the sandbox.
"""

import subprocess
import time
from collections.abc import Mapping
from functools import partial

from deathmatch.agent.keeper import Settings
from deathmatch.errors import UserError
from deathmatch.hosts import opening
from deathmatch.hosts.testbed import SERVER, Install, Testbed, prepared, together
from deathmatch.plan import testbed as plan

LINK, CLIENT_LINK = "server0", "client0"
# In the sandbox's own /run, which ends with it.
_FOLDER = "/run/deathmatch"
# On one machine no message is lost, and a stall of it must not end a trial; the agents end with the
# sandbox.
_SILENCE_S = 600.0


def build(
    spec: plan.Testbed, server_sysctl: Mapping[str, str | int], install: Install | None = None
) -> Testbed:
    """Make the clients' namespaces, the links and the addresses; return `testbed.prepared` hosts.

    Takes some tenths of a second. Raises UserError if the kernel or iproute2 refuses a step.
    """
    began_ns = time.monotonic_ns()
    # `ip netns` keeps its names in /run, so the sandbox needs its own.
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    _join(spec)
    settings = Settings(_FOLDER, _SILENCE_S, lock=False)
    enter = {SERVER: []} | {name: ["ip", "netns", "exec", name] for name in spec.client_names}
    hosts = together(partial(opening.through, *item, settings) for item in enter.items())
    return prepared(spec, hosts, LINK, server_sysctl, install, separate=False, began_ns=began_ns)


def run(*words: str) -> None:
    """Run a command on this machine; raise UserError with its standard error if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise UserError(
            f"`{' '.join(words)}` failed: {done.stderr.strip()}",
            where="testbed",
            remedy="the testbed needs Linux network namespaces, veth and iproute2",
        )


def _join(spec: plan.Testbed) -> None:
    for name in spec.client_names:
        run("ip", "netns", "add", name)
    if len(spec.client_names) == 1:
        _pair(LINK, spec.client_names[0])
    else:
        run("ip", "link", "add", LINK, "type", "bridge")
        for place, name in enumerate(spec.client_names):
            port = f"port{place}"
            _pair(port, name)
            run("ip", "link", "set", port, "master", LINK, "up")
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", spec.server.address, "dev", LINK)
    run("ip", "link", "set", LINK, "up")
    for name, side in zip(spec.client_names, spec.client_sides):
        inside = ["ip", "-n", name]
        run(*inside, "link", "set", "lo", "up")
        run(*inside, "address", "add", side.address, "dev", CLIENT_LINK)
        run(*inside, "link", "set", CLIENT_LINK, "up")
        for source in filter(None, (*side.sources, side.spare_sources)):
            # One route for the whole network, not one for each of its addresses.
            run(*inside, "route", "add", "local", source, "dev", "lo")
            run("ip", "route", "add", source, "via", side.host_address)


def _pair(end: str, client: str) -> None:
    run("ip", "link", "add", end, "type", "veth", "peer", CLIENT_LINK, "netns", client)
