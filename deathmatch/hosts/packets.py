"""To whom the kernel charges its work on packets, where client and server are one machine.

A veth pair hands a packet over within the call that sends it: the receiver's part of TCP runs in
the sender's time. Other ways give that part a place of its own:

- `plain`: as the kernel has it, by which datasets are measured;
- `steered`: RPS, which hands each side's packets to that side's CPUs, in interrupts;
- `threaded`: NAPI's own kernel threads, one for each end of the pair, which can be distinguished. A
  veth end has NAPI with generic receive offload only, and segments larger than the link's would
  pass it by.

Source: Documentation/networking/scaling.rst and napi.rst of the kernel, drivers/net/veth.c.
"""

import ctypes
import fcntl
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from deathmatch.hosts.netns_testbed import CLIENT_LINK
from deathmatch.hosts.testbed import SERVER, Testbed

PLAIN, STEERED, THREADED = MODES = ("plain", "steered", "threaded")
# The name of a NAPI thread, up to the 15 characters that a thread's name has.
THREAD = "napi/{}-"
_SIOCETHTOOL, _ETHTOOL_STSO, _ETHTOOL_SGRO = 0x8946, 0x1F, 0x2C


def charge(bed: Testbed, mode: str) -> None:
    """Set one of MODES on both ends of a new testbed's pair; it ends with them.

    UserError if the kernel refuses.
    """
    if mode == PLAIN:
        return
    cpus = bed.cpus()
    for host, link in ((bed.server, bed.link), (bed.clients[0], CLIENT_LINK)):
        # In a mount namespace of its own, as /sys may show another network's interfaces.
        enter = ["unshare", "--mount", sys.executable, "-m", "deathmatch.hosts.packets"]
        host.run(*enter, link, mode, mask(cpus[host.name]))


def mask(cpus: Sequence[int]) -> str:
    """Return the CPUs as a mask in hexadecimal, as the kernel's files want it."""
    return f"{sum(1 << cpu for cpu in cpus):x}"


def side(thread: str) -> str | None:
    """Return "server" or "client" for the name of a thread that handles its packets, or None."""
    links = {SERVER: "server0", "client": CLIENT_LINK}
    return next(
        (name for name, link in links.items() if thread.startswith(THREAD.format(link))), None
    )


def _set(link: str, mode: str, cpus: str) -> None:
    folder = Path("/sys/class/net", link)
    if not folder.exists():
        subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
    if mode == STEERED:
        (folder / "queues" / "rx-0" / "rps_cpus").write_text(cpus)
        return
    _offload(link, _ETHTOOL_STSO, on=False)
    _offload(link, _ETHTOOL_SGRO, on=True)
    (folder / "threaded").write_text("1")


def _offload(link: str, which: int, on: bool) -> None:
    value = ctypes.create_string_buffer(struct.pack("II", which, on))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sP8x", link.encode(), ctypes.addressof(value))
        fcntl.ioctl(any_socket, _SIOCETHTOOL, request)


if __name__ == "__main__":
    _set(*sys.argv[1:])
