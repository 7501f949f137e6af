"""Read what a host's kernel says of itself; print it as JSON. Run on the host, by its own Python.

It needs nothing but the standard library, lscpu(1) and ip(8), and no root. Its one argument is
JSON: the host's `address` under test, the `window_s` over which load is looked at, and whether to
read the `whole` machine or just what can change between two trials. What cannot be read is in
`failed`, with the reason; texts are as the kernel wrote them: who reads them parses them.
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

CHANGING = (
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/net/sockstat",
    "/proc/sys/fs/file-max",
    "/proc/sys/fs/nr_open",
    "/proc/sys/net/core/somaxconn",
    "/proc/sys/net/ipv4/ip_local_port_range",
    "/proc/sys/net/ipv4/ip_local_reserved_ports",
    "/proc/sys/net/ipv4/tcp_max_tw_buckets",
    "/proc/sys/net/ipv4/tcp_timestamps",
    "/proc/sys/net/ipv4/tcp_tw_reuse",
    "/proc/sys/net/netfilter/nf_conntrack_count",
    "/proc/sys/net/netfilter/nf_conntrack_max",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/smt/active",
    "/sys/kernel/mm/transparent_hugepage/enabled",
)
WHOLE = (
    "/etc/os-release",
    "/proc/irq/[0-9]*/smp_affinity_list",
    "/proc/sys/kernel/osrelease",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/cpuinfo_max_freq",
    "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/cpuinfo_min_freq",
    "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_driver",
    "/sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list",
    "/sys/devices/system/cpu/vulnerabilities/*",
    "/sys/devices/system/node/node[0-9]*/cpulist",
)
# Of /sys/class/net/<interface>/.
OF_INTERFACE = ("device/numa_node", "queues/rx-*/rps_cpus")
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
        if any(one.get("local") == address for one in link.get("addr_info", [])):
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
    """Return speed, duplex, driver, offloads and coalescing, as the driver tells (ethtool(8))."""

    def number(request, place=1):
        return struct.unpack_from("I", ask(name, struct.pack("I", request), 128), 4 * place)[0]

    def link():
        # The kernel first tells how many words its masks of link modes have.
        head = struct.pack("II7Bb", GLINKSETTINGS, 0, *[0] * 8)
        words = -struct.unpack_from("b", ask(name, head, 48), 15)[0]
        head = struct.pack("II7Bb", GLINKSETTINGS, 0, *[0] * 7, words)
        answer = ask(name, head, 48 + 12 * words)
        return struct.unpack_from("IB", answer, 4)

    def driver():
        answer = ask(name, struct.pack("I", GDRVINFO), 196)
        return answer[4:36].split(b"\0")[0].decode()

    def lro():
        return number(GFLAGS) & FLAG_LRO

    asked = {what: lambda code=code: number(code) for what, code in OFFLOADS.items()}
    asked["large-receive-offload"] = lro
    asked |= {"link": link, "driver": driver}
    asked |= {"rx-usecs": lambda: number(GCOALESCE), "adaptive-rx": lambda: number(GCOALESCE, 10)}
    answers = {}
    for what, function in asked.items():
        try:
            answers[what] = function()
        except OSError as error:
            failed["ethtool " + what] = error.strerror
    return answers


def of_interface(link, root, failed):
    """Return (files, interrupts) of the interface in /sys, if /sys shows its namespace."""
    folder = f"/sys/class/net/{link['ifname']}/"
    index = read([folder + "ifindex"], root, {}).get(folder + "ifindex", "0")
    if int(index) != link["ifindex"]:
        failed[folder] = "/sys shows another network namespace"
        return {}, []
    found = {os.path.basename(p) for one in INTERRUPTS for p in glob.glob(root + folder + one)}
    return read([folder + one for one in OF_INTERFACE], root, failed), sorted(map(int, found))


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
    found = {}
    for path in glob.glob(root + "/proc/[0-9]*/stat"):
        try:
            with open(path, errors="replace") as file:
                before, _, after = file.read().rpartition(")")
        except OSError:
            continue
        words = after.split()
        pid, _, name = before.partition(" (")
        found[int(pid)] = (name, int(words[11]) + int(words[12]))
    found.pop(os.getpid(), None)
    return found


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
        "processes": [one for one in used if one["ticks"] > 0],
    }


def probe(address, window_s=0.0, whole=True, root=""):
    """Return everything, ready for JSON; `root` goes before each path."""
    failed = {}
    # First, so that what this program does is not in it.
    counted = window(window_s, root, failed) if window_s else None
    link = interface(address, failed)
    files = read(CHANGING + (WHOLE if whole else ()), root, failed)
    interrupts = []
    if link and whole:
        more, interrupts = of_interface(link, root, failed)
        files |= more
    return {
        "files": files,
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
