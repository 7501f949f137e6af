"""Rules about a machine: its CPUs, clock and memory, and what else runs on it."""

from collections.abc import Iterator

from deathmatch.hosts.audit import facts
from deathmatch.hosts.audit.facts import SERVER
from deathmatch.hosts.audit.formats import cpu_ranges
from deathmatch.hosts.audit.rule import MACHINE, Seen, machines, rule, share

# Half of the CPUs: from there on, what is measured is the other work.
REFUSED_BUSY = 0.5
WARNED_BUSY = 0.1
WARNED_STEAL = 0.01
WARNED_PRESSURE = 0.1
NAMED_PROCESSES = 3
# Read in user space, without a system call (Documentation/virt/kvm, vdso(7)).
FAST_CLOCKS = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "timebase"}
CPU = "/sys/devices/system/cpu"


def _busy(audit: facts.Audit, above: float, up_to: float) -> Iterator[Seen]:
    for name, host, cpus in machines(audit):
        shares = [host.load.busy_share[cpu] for cpu in cpus if cpu in (host.load.busy_share or {})]
        if not shares or not above < (mean := sum(shares) / len(shares)) <= up_to:
            continue
        busiest = [
            f"{one.name} (pid {one.pid}) {one.cpus:.2f}"
            for one in (host.load.processes or [])[:NAMED_PROCESSES]
        ]
        who = f"; CPUs used: {', '.join(busiest)}" if busiest else ""
        read = f"its CPUs were {share(mean)} busy for {host.load.window_s:.1f} s{who}"
        yield Seen(name, read, "end what else runs, or wait; who it is: top -o %CPU")


@rule(
    "other-load", "refuse",
    "Other work takes more than half of the CPUs that server and client are to use: rates and "
    "latencies would be its doing.",
    "proc(5), /proc/stat",
)  # fmt: skip
def other_load(audit: facts.Audit) -> Iterator[Seen]:
    """Look for much other work."""
    return _busy(audit, REFUSED_BUSY, 1)


@rule(
    "some-other-load", "warn",
    "Other work runs on the CPUs that server and client are to use: it lengthens the tail of "
    "latencies first.",
    "proc(5), /proc/stat",
)  # fmt: skip
def some_other_load(audit: facts.Audit) -> Iterator[Seen]:
    """Look for some other work."""
    return _busy(audit, WARNED_BUSY, REFUSED_BUSY)


@rule(
    "steal", "warn",
    "The hypervisor gave the CPU to other guests: servers stand still in that time.",
    "proc(5), /proc/stat, steal",
)  # fmt: skip
def steal(audit: facts.Audit) -> Iterator[Seen]:
    """Look for time that the hypervisor took."""
    for name, host, _ in machines(audit):
        if (host.load.steal_share or 0) > WARNED_STEAL:
            read = f"{share(host.load.steal_share)} of the CPU time was stolen"
            yield Seen(name, read, "use a dedicated host, or a quieter hour; repeat more trials")


@rule(
    "pressure", "warn",
    "Tasks waited for a resource although nothing was measured yet.",
    "kernel documentation, accounting/psi.rst",
)  # fmt: skip
def pressure(audit: facts.Audit) -> Iterator[Seen]:
    """Look for tasks that waited."""
    for name, host, _ in machines(audit):
        for resource in ("cpu", "io", "memory"):
            value = getattr(host.load, f"{resource}_pressure")
            if (value or 0) > WARNED_PRESSURE:
                read = f"some task waited for {resource} in {share(value)} of the time"
                yield Seen(name, read, f"end what else runs; see /proc/pressure/{resource}")


@rule(
    "cpus-shared", "warn",
    "Server and client run on the same CPU: each one's work is in the other's latencies, and a "
    "client that polls takes what the server needs.",
    "config/testbeds/, key cpus",
)  # fmt: skip
def cpus_shared(audit: facts.Audit) -> Iterator[Seen]:
    """Look for CPUs of both sides."""
    for client in [] if audit.separate else audit.clients:
        both = sorted({*audit.cpus[SERVER]} & {*audit.cpus[client]})
        if both:
            read = f"server and {client} share CPU {cpu_ranges(both)}"
            yield Seen(MACHINE, read, "give them different `cpus`, or use a machine with more")


@rule(
    "smt-siblings", "warn",
    "Server and client run on two threads of one core and share its execution units: each slows "
    "the other by what the other does.",
    "kernel documentation, admin-guide/cputopology.rst",
)  # fmt: skip
def smt_siblings(audit: facts.Audit) -> Iterator[Seen]:
    """Look for cores of both sides."""
    siblings = audit.hosts[SERVER].processor.siblings or {}
    for client in [] if audit.separate else audit.clients:
        pairs = [
            f"{own}+{other}"
            for own in audit.cpus[SERVER]
            for other in siblings.get(own, [])
            if other != own and other in audit.cpus[client] and other not in audit.cpus[SERVER]
        ]
        if pairs:
            read = f"threads of one core: {', '.join(pairs)}"
            mend = f"choose `cpus` by core (lscpu --extended), or: echo off > {CPU}/smt/control"
            yield Seen(MACHINE, read, mend)


@rule(
    "numa-spread", "warn",
    "A process whose CPUs are on several nodes reaches part of its memory over the interconnect, "
    "which part changes from start to start.",
    "numa(7)",
)  # fmt: skip
def numa_spread(audit: facts.Audit) -> Iterator[Seen]:
    """Look for sides on several nodes."""
    for name, host in audit.hosts.items():
        nodes = host.processor.numa_nodes or {}
        used = [node for node, cpus in nodes.items() if {*cpus} & {*audit.cpus[name]}]
        if len(used) > 1:
            read = f"CPUs {cpu_ranges(audit.cpus[name])} are on nodes {cpu_ranges(used)}"
            mend = f"one node's `cpus`: {', '.join(cpu_ranges(nodes[node]) for node in used)}"
            yield Seen(name, read, mend)


@rule(
    "numa-far-interface", "warn",
    "The network device belongs to another node than the CPUs: every packet crosses the "
    "interconnect.",
    "kernel documentation, ABI/testing/sysfs-bus-pci, numa_node",
)  # fmt: skip
def numa_far_interface(audit: facts.Audit) -> Iterator[Seen]:
    """Look for devices on another node."""
    for name, host in audit.hosts.items():
        node, nodes = host.interface.numa_node, host.processor.numa_nodes or {}
        near = nodes.get(node, []) if node is not None else []
        if near and not {*near} & {*audit.cpus[name]}:
            read = (
                f"{host.interface.name} is on node {node}, CPUs {cpu_ranges(audit.cpus[name])} not"
            )
            yield Seen(name, read, f"choose `cpus` among {cpu_ranges(near)}")


@rule(
    "governor", "warn",
    "The governor lowers the CPU's frequency when it idles: low rates are answered slower than "
    "high ones.",
    "kernel documentation, admin-guide/pm/cpufreq.rst",
)  # fmt: skip
def governor(audit: facts.Audit) -> Iterator[Seen]:
    """Look for governors that save power."""
    for name, host, cpus in machines(audit):
        governors = host.processor.governors or {}
        found = sorted({governors[cpu] for cpu in cpus if cpu in governors} - {"performance"})
        if found:
            mend = f"echo performance | sudo tee {CPU}/cpu*/cpufreq/scaling_governor"
            yield Seen(name, f"governor {', '.join(found)}", mend)


@rule(
    "turbo", "note",
    "The frequency depends on temperature and on how many cores are busy: it differs between "
    "trials, and between one CPU and all.",
    "kernel documentation, admin-guide/pm/intel_pstate.rst and cpufreq.rst",
)  # fmt: skip
def turbo(audit: facts.Audit) -> Iterator[Seen]:
    """Look for turbo frequencies."""
    for name, host, _ in machines(audit):
        if host.processor.turbo:
            intel = (host.processor.frequency_driver or "").startswith("intel")
            file = "1 | sudo tee {}/intel_pstate/no_turbo" if intel else (
                "0 | sudo tee {}/cpufreq/boost"
            )  # fmt: skip
            yield Seen(name, "turbo is on", f"echo {file.format(CPU)}")


@rule(
    "unmitigated", "note",
    "A mitigation costs time in each system call: machines with and without are not alike.",
    "kernel documentation, admin-guide/hw-vuln/",
)  # fmt: skip
def unmitigated(audit: facts.Audit) -> Iterator[Seen]:
    """Look for vulnerabilities that the kernel leaves open."""
    for name, host, _ in machines(audit):
        known = host.processor.vulnerabilities or {}
        found = [what for what, state in known.items() if state.startswith("Vulnerable")]
        if found:
            read = f"vulnerable: {', '.join(found)}"
            mend = "nothing to mend; the kernel's defaults: boot without mitigations=off"
            yield Seen(name, read, mend)


@rule(
    "huge-pages", "note",
    "The kernel makes huge pages of any memory: a server may stand still while it does, and its "
    "memory reads larger.",
    "kernel documentation, admin-guide/mm/transhuge.rst",
)  # fmt: skip
def huge_pages(audit: facts.Audit) -> Iterator[Seen]:
    """Look for huge pages that nobody asked for."""
    for name, host, _ in machines(audit):
        if host.memory.transparent_huge_pages == "always":
            mend = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
            yield Seen(name, "transparent huge pages: always", mend)


@rule(
    "slow-clock", "warn",
    "Each look at the clock is a system call or a read of a device: what measures time spends it.",
    "kernel documentation, timers/timekeeping.rst; vdso(7)",
)  # fmt: skip
def slow_clock(audit: facts.Audit) -> Iterator[Seen]:
    """Look for clock sources that are read in the kernel."""
    for name, host, _ in machines(audit):
        source, others = host.clock.source, host.clock.available or []
        if source and source not in FAST_CLOCKS:
            fast = next((one for one in others if one in FAST_CLOCKS), None)
            file = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
            mend = f"echo {fast} | sudo tee {file}" if fast else "boot with clocksource=tsc"
            yield Seen(name, f"clock source {source}", mend)


@rule(
    "clock-unsynchronised", "note",
    "Nothing keeps the clock right: times of day in records are off. Latencies are not: each is "
    "taken from one host's monotonic clock.",
    "adjtimex(2), STA_UNSYNC",
)  # fmt: skip
def clock_unsynchronised(audit: facts.Audit) -> Iterator[Seen]:
    """Look for clocks that nobody keeps."""
    for name, host, _ in machines(audit):
        if host.clock.synchronised is False:
            yield Seen(name, "the clock is not synchronised", "run chronyd or systemd-timesyncd")


@rule(
    "hosts-differ", "note",
    "Server and client are not alike: what the client can offer does not tell what the server's "
    "machine can.",
    "lscpu(1), uname(1)",
)  # fmt: skip
def hosts_differ(audit: facts.Audit) -> Iterator[Seen]:
    """Look for machines of two kinds."""
    if not audit.separate:
        return
    server = audit.hosts[SERVER]
    for client in audit.clients:
        other = audit.hosts[client]
        pairs = {
            "kernel": (server.kernel, other.kernel),
            "CPU": (server.processor.model, other.processor.model),
        }
        differ = [f"{what} {a}, not {b}" for what, (a, b) in pairs.items() if a and b and a != b]
        if differ:
            yield Seen(client, f"the server has {'; '.join(differ)}", "nothing, or take equal ones")


RULES = (
    other_load, some_other_load, steal, pressure, cpus_shared, smt_siblings, numa_spread,
    numa_far_interface, governor, turbo, unmitigated, huge_pages, slow_clock, clock_unsynchronised,
    hosts_differ,
)  # fmt: skip
