"""The `netns` testbed: where client and server run.

Called inside a sandbox (see `sandbox`), whose own network namespace becomes the server's;
the client gets a second one, joined to it by a veth pair. Both end with the sandbox.
"""

import os
import resource
import subprocess
from pathlib import Path

from deathmatch.errors import UserError

CLIENT = "client"


def build(testbed: dict, server_sysctl: dict) -> subprocess.Popen:
    """Make the client's namespace, the link, the addresses and both sides' sysctls.

    `server_sysctl` overrides the testbed's own. Returns a process that sleeps in the client's
    namespace: its /proc/<pid>/net shows the client's counters.
    """
    # `ip netns` keeps its names in /run: a private one, gone with the sandbox.
    _run("mount", "-t", "tmpfs", "tmpfs", "/run")
    _run("ip", "netns", "add", CLIENT)
    _run("ip", "link", "add", "server0", "type", "veth", "peer", "client0", "netns", CLIENT)
    _run("ip", "link", "set", "lo", "up")
    _run(*in_client("ip", "link", "set", "lo", "up"))
    for side, prefix in (("server", []), ("client", in_client())):
        _run(*prefix, "ip", "address", "add", testbed[side]["address"], "dev", f"{side}0")
        _run(*prefix, "ip", "link", "set", f"{side}0", "up")
    for key, value in {**testbed["server"]["sysctl"], **server_sysctl}.items():
        _sysctl(key, value, [])
    for key, value in testbed["client"]["sysctl"].items():
        _sysctl(key, value, in_client())
    return subprocess.Popen(in_client("sleep", "infinity"))


def in_client(*command: str) -> list[str]:
    """Return the command line that runs `command` in the client's namespace."""
    return ["ip", "netns", "exec", CLIENT, *command]


def host(testbed: dict) -> str:
    """Return the server's address."""
    return testbed["server"]["address"].split("/")[0]


def cpus(which: str, available: list[int]) -> list[int]:
    """Return the CPU numbers that a testbed's `cpus` means on a machine with `available`.

    "last" is the last quarter, at least one; "first" the others (all, if there is but one);
    "all" every one; anything else a list as taskset(1) writes it, such as "0-3,6".
    """
    last = available[-max(1, len(available) // 4) :]
    if which == "all":
        return available
    if which == "last":
        return last
    if which == "first":
        return [cpu for cpu in available if cpu not in last] or available
    chosen = []
    for part in which.split(","):
        first, _, end = part.partition("-")
        chosen += range(int(first), int(end or first) + 1)
    absent = sorted(set(chosen) - set(available))
    if absent:
        raise UserError(
            f"this machine has no CPU {absent[0]}",
            where=f"testbed, cpus = {which!r}",
            remedy=f'available: {available}; or write "first", "last" or "all"',
        )
    return sorted(chosen)


def raise_descriptors(wanted: int) -> int:
    """Raise this process's limit of open files towards `wanted`; return what was got."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (max(wanted, hard), hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, limit), limit))
            break
        except (ValueError, OSError):
            continue
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def sysctls(keys: list[str], prefix: list[str]) -> dict[str, str]:
    """Return the values in force of `keys` in the namespace that `prefix` enters."""
    read = {}
    for key in keys:
        path = _sysctl_path(key)
        if prefix:
            done = subprocess.run([*prefix, "cat", path], capture_output=True, text=True)
            read[key] = done.stdout.strip() if done.returncode == 0 else ""
        else:
            read[key] = path.read_text().strip() if path.exists() else ""
    return read


def affinity() -> list[int]:
    """Return the CPUs this process may use."""
    return sorted(os.sched_getaffinity(0))


def _sysctl_path(key: str) -> Path:
    return Path("/proc/sys", *key.split("."))


def _sysctl(key: str, value: int | str, prefix: list[str]) -> None:
    # A kernel that lacks a setting has its own behaviour: `sysctls` records what was in force.
    script = 'test ! -e "$1" || echo "$2" > "$1"'
    _run(*prefix, "sh", "-c", script, "sh", str(_sysctl_path(key)), str(value))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise UserError(
            f"`{' '.join(command)}` failed: {done.stderr.strip()}",
            where="testbed",
            remedy="the testbed needs Linux network namespaces, veth and iproute2",
        )
