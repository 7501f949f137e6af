"""Read what a host's kernel says of itself; print it as JSON. Run on the host, by its own Python.

It needs nothing but the standard library, lscpu(1) and ip(8), and no root. Its one argument is
JSON: the host's `address` under test, the patterns of `files` to print, the `window_s` over which
load is looked at, and whether to read the `whole` machine or just what can change between two
trials. What cannot be read is in `failed`, with the reason. Texts are as the kernel wrote them:
`hosts.audit.facts` parses them.
"""

import ctypes
import fcntl
import glob
import json
import os
import resource
import socket
import struct
import subprocess
import sys
import time

# In /sys/class/net/<interface>/.
IN_INTERFACE = ("device/numa_node", "queues/rx-*/rps_cpus")
INTERRUPTS = ("device/msi_irqs/*", "device/../msi_irqs/*")
# Read at both ends of the window.
COUNTED = ("/proc/stat", "/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory")

SIOCETHTOOL = 0x8946
GDRVINFO, GCOALESCE, GLINKSETTINGS = 0x3, 0xE, 0x4C
# ethtool(8)'s names; each command returns one number.
OFFLOADS = {
    "rx-checksumming": 0x14,
    "tx-checksumming": 0x16,
    "scatter-gather": 0x18,
    "tcp-segmentation-offload": 0x1E,
    "generic-segmentation-offload": 0x23,
    "generic-receive-offload": 0x2B,
}
GFLAGS, FLAG_LRO = 0x25, 1 << 15


def read(patterns, root, failed):
    """Return {path: text} of all files that match; what cannot be read goes to `failed`."""
    texts = {}
    for pattern in patterns:
        paths = sorted(glob.glob(root + pattern))
        if not paths:
            failed[pattern] = "no such file"
        for path in paths:
            try:
                with open(path, errors="replace") as file:
                    texts[path[len(root) :]] = file.read()
            except OSError as error:
                failed[path[len(root) :]] = error.strerror
    return texts


def command(words, failed):
    """Return what a command prints; None, with a reason in `failed`, if it cannot."""
    name = " ".join(words)
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        failed[name] = getattr(error, "strerror", None) or "no answer in 10 s"
        return None
    if done.returncode != 0:
        failed[name] = done.stderr.strip() or f"exit status {done.returncode}"
        return None
    return done.stdout


def interface(address, failed):
    """Return what ip(8) says of the interface with this address; None if there is none."""
    shown = command(["ip", "-json", "-details", "address", "show"], failed)
    for link in json.loads(shown or "[]"):
        if any(own.get("local") == address for own in link.get("addr_info", [])):
            return link
    if shown:
        failed["interface"] = f"no interface has the address {address}"
    return None


def ask(name, request, size):
    """Return the driver's answer to an ethtool request, `size` bytes at least; OSError if none."""
    data = ctypes.create_string_buffer(request, max(size, len(request)))
    argument = struct.pack("16sP8x", name.encode(), ctypes.addressof(data))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCETHTOOL, argument)
    return data.raw


def ethtool(name, failed):
    """Return the driver's speed, duplex, name, offloads and coalescing (ethtool(8))."""

    def number(request, place=1):
        return struct.unpack_from("I", ask(name, struct.pack("I", request), 128), 4 * place)[0]

    def link():
        # The first answer says how many words the masks of link modes have.
        head = struct.pack("II7Bb", GLINKSETTINGS, 0, *[0] * 8)
        words = -struct.unpack_from("b", ask(name, head, 48), 15)[0]
        head = struct.pack("II7Bb", GLINKSETTINGS, 0, *[0] * 7, words)
        answer = ask(name, head, 48 + 12 * words)
        return struct.unpack_from("IB", answer, 4)

    def driver():
        answer = ask(name, struct.pack("I", GDRVINFO), 196)
        return answer[4:36].split(b"\0")[0].decode()

    requests = {what: lambda code=code: number(code) for what, code in OFFLOADS.items()}
    requests |= {
        "large-receive-offload": lambda: number(GFLAGS) & FLAG_LRO,
        "link": link,
        "driver": driver,
        "rx-usecs": lambda: number(GCOALESCE),
        "adaptive-rx": lambda: number(GCOALESCE, 10),
    }
    answers = {}
    for what, function in requests.items():
        try:
            answers[what] = function()
        except OSError as error:
            failed["ethtool " + what] = error.strerror
    return answers


def in_interface(link, root, failed):
    """Return (files, interrupts) of the interface in /sys, if /sys shows its namespace."""
    folder = f"/sys/class/net/{link['ifname']}/"
    index = read([folder + "ifindex"], root, {}).get(folder + "ifindex", "0")
    if int(index) != link["ifindex"]:
        failed[folder] = "/sys shows another network namespace"
        return {}, []
    files = [file for name in INTERRUPTS for file in glob.glob(root + folder + name)]
    numbers = sorted({int(os.path.basename(file)) for file in files})
    return read([folder + name for name in IN_INTERFACE], root, failed), numbers


class Timex(ctypes.Structure):
    """struct timex of adjtimex(2)."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        *((name, ctypes.c_long) for name in ("offset", "freq", "maxerror", "esterror")),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 256),
    )


def clock(failed):
    """Return adjtimex(2)'s state, status and maximum error in us; asking changes nothing."""
    asked = Timex()
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(asked))
    if state < 0:
        failed["adjtimex"] = os.strerror(ctypes.get_errno())
        return None
    return {"state": state, "status": asked.status, "maxerror": asked.maxerror}


def processes(root):
    """Return {pid: (name, its CPU time in ticks)} of all that can be seen, but for this one."""
    seen = {}
    for path in glob.glob(root + "/proc/[0-9]*/stat"):
        try:
            with open(path, errors="replace") as file:
                before, _, after = file.read().rpartition(")")
        except OSError:
            continue
        words = after.split()
        pid, _, name = before.partition(" (")
        seen[int(pid)] = (name, int(words[11]) + int(words[12]))
    seen.pop(os.getpid(), None)
    return seen


def window(seconds, root, failed):
    """Return the counters at both ends of a time, and the CPU time of processes between."""
    began_ns, began, ran = time.monotonic_ns(), read(COUNTED, root, failed), processes(root)
    time.sleep(seconds)
    ended_ns, ended, run = time.monotonic_ns(), read(COUNTED, root, failed), processes(root)
    used = [
        {"pid": pid, "name": name, "ticks": ticks - ran.get(pid, (name, 0))[1]}
        for pid, (name, ticks) in run.items()
    ]
    return {
        "window_ns": ended_ns - began_ns,
        "tick_hz": os.sysconf("SC_CLK_TCK"),
        "before": began,
        "after": ended,
        "processes": [process for process in used if process["ticks"] > 0],
    }


def probe(address, files, window_s=0.0, whole=True, root=""):
    """Return everything, ready for JSON; `root` goes before each path."""
    failed = {}
    # First, so that what this program does is not in it.
    counted = window(window_s, root, failed) if window_s else None
    link = interface(address, failed)
    texts = read(files, root, failed)
    interrupts = []
    if link and whole:
        more, interrupts = in_interface(link, root, failed)
        texts |= more
    return {
        "files": texts,
        "load": counted,
        "interface": link,
        "interrupts": interrupts,
        "ethtool": ethtool(link["ifname"], failed) if link else {},
        "lscpu": command(["lscpu", "--json"], failed) if whole else None,
        "descriptors": resource.getrlimit(resource.RLIMIT_NOFILE),
        "clock": clock(failed),
        "failed": failed,
    }


if __name__ == "__main__":
    json.dump(probe(**json.loads(sys.argv[1])), sys.stdout)
