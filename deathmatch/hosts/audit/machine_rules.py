"""Rules about a machine: its CPUs, clock and memory, and what else runs on it."""

from collections.abc import Iterator

from deathmatch.checks.rule import Finding, Rules
from deathmatch.hosts.audit.formats import cpu_ranges
from deathmatch.hosts.audit.rule import Side, clients, hosts, machines, neighbours
from deathmatch.hosts.audit.show import share

# From half of the CPUs on, what is measured is the other work.
REFUSED_BUSY = 0.5
WARNED_BUSY = 0.1
WARNED_STEAL = 0.01
WARNED_PRESSURE = 0.1
NAMED_PROCESSES = 3
# Read in user space, without a system call (Documentation/virt/kvm, vdso(7)).
FAST_CLOCKS = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "timebase"}
CPU = "/sys/devices/system/cpu"
END_LOAD = "end what else runs, or wait; who it is: top -o %CPU"

MACHINES = Rules(scope=machines)


def _busy(side: Side, above: float, up_to: float) -> Iterator[str]:
    load = side.host.load
    shares = [load.busy_share[cpu] for cpu in side.cpus if cpu in (load.busy_share or {})]
    if shares and above < (mean := sum(shares) / len(shares)) <= up_to:
        busiest = [
            f"{process.name} (pid {process.pid}) {process.cpus:.2f}"
            for process in (load.processes or [])[:NAMED_PROCESSES]
        ]
        who = f"; CPUs used: {', '.join(busiest)}" if busiest else ""
        yield f"its CPUs were {share(mean)} busy for {load.window_s:.1f} s{who}"


@MACHINES.add("other-load", "refuse", "proc(5), /proc/stat", END_LOAD)
def other_load(side: Side) -> Iterator[str]:
    """Other work takes more than half of the CPUs that server and client are to use: rates and
    latencies would be its doing.
    """
    return _busy(side, REFUSED_BUSY, 1)


@MACHINES.add("some-other-load", "warn", "proc(5), /proc/stat", END_LOAD)
def some_other_load(side: Side) -> Iterator[str]:
    """Other work runs on the CPUs that server and client are to use: it lengthens the tail of
    latencies first.
    """
    return _busy(side, WARNED_BUSY, REFUSED_BUSY)


@MACHINES.add(
    "steal", "warn", "proc(5), /proc/stat, steal",
    "use a dedicated host, or a quieter hour; repeat more trials",
)  # fmt: skip
def steal(side: Side) -> Iterator[str]:
    """The hypervisor gave the CPU to other guests: servers stand still in that time."""
    if (side.host.load.steal_share or 0) > WARNED_STEAL:
        yield f"{share(side.host.load.steal_share)} of the CPU time was stolen"


@MACHINES.add("pressure", "warn", "kernel documentation, accounting/psi.rst")
def pressure(side: Side) -> Iterator[Finding]:
    """Tasks waited for a resource although nothing was measured yet."""
    for resource in ("cpu", "io", "memory"):
        value = getattr(side.host.load, f"{resource}_pressure")
        if (value or 0) > WARNED_PRESSURE:
            yield Finding(
                f"some task waited for {resource} in {share(value)} of the time",
                remedy=f"end what else runs; see /proc/pressure/{resource}",
            )


@MACHINES.add(
    "cpus-shared", "warn", "config/testbeds/, key cpus",
    "give them different `cpus`, or use a machine with more", scope=neighbours,
)  # fmt: skip
def cpus_shared(client: Side) -> Iterator[str]:
    """Server and client run on the same CPU: each one's work is in the other's latencies, and a
    client that polls takes what the server needs.
    """
    if both := {*client.server.cpus} & {*client.cpus}:
        yield f"server and {client.name} share CPU {cpu_ranges(both)}"


@MACHINES.add(
    "smt-siblings", "warn", "kernel documentation, admin-guide/cputopology.rst",
    f"choose `cpus` by core (lscpu --extended), or: echo off > {CPU}/smt/control",
    scope=neighbours,
)  # fmt: skip
def smt_siblings(client: Side) -> Iterator[str]:
    """Server and client run on two threads of one core and share its execution units: each slows
    the other by what the other does.
    """
    server = client.server
    siblings = server.host.processor.siblings or {}
    pairs = [
        f"{own}+{other}"
        for own in server.cpus
        for other in siblings.get(own, [])
        if other != own and other in client.cpus and other not in server.cpus
    ]
    if pairs:
        yield f"threads of one core: {', '.join(pairs)}"


@MACHINES.add("numa-spread", "warn", "numa(7)", scope=hosts)
def numa_spread(side: Side) -> Iterator[Finding]:
    """A process whose CPUs are on several nodes reaches part of its memory over the interconnect,
    which part changes from start to start.
    """
    nodes = side.host.processor.numa_nodes or {}
    used = [node for node, cpus in nodes.items() if {*cpus} & {*side.cpus}]
    if len(used) > 1:
        choices = ", ".join(cpu_ranges(nodes[node]) for node in used)
        yield Finding(
            f"CPUs {cpu_ranges(side.cpus)} are on nodes {cpu_ranges(used)}",
            remedy=f"one node's `cpus`: {choices}",
        )


@MACHINES.add(
    "numa-far-interface", "warn", "kernel documentation, ABI/testing/sysfs-bus-pci, numa_node",
    scope=hosts,
)  # fmt: skip
def numa_far_interface(side: Side) -> Iterator[Finding]:
    """The network device belongs to another node than the CPUs: every packet crosses the
    interconnect.
    """
    node = side.interface.numa_node
    near = (side.host.processor.numa_nodes or {}).get(node)
    if near and not {*near} & {*side.cpus}:
        yield Finding(
            f"{side.interface.name} is on node {node}, CPUs {cpu_ranges(side.cpus)} not",
            remedy=f"choose `cpus` among {cpu_ranges(near)}",
        )


@MACHINES.add(
    "governor", "warn", "kernel documentation, admin-guide/pm/cpufreq.rst",
    f"echo performance | sudo tee {CPU}/cpu*/cpufreq/scaling_governor",
)  # fmt: skip
def governor(side: Side) -> Iterator[str]:
    """The governor lowers the CPU's frequency when it idles: low rates are answered slower than
    high ones.
    """
    governors = side.host.processor.governors or {}
    saving = {governors[cpu] for cpu in side.cpus if cpu in governors} - {"performance"}
    if saving:
        yield f"governor {', '.join(sorted(saving))}"


@MACHINES.add(
    "turbo", "note", "kernel documentation, admin-guide/pm/intel_pstate.rst and cpufreq.rst"
)
def turbo(side: Side) -> Iterator[Finding]:
    """The frequency depends on temperature and on how many cores are busy: it differs between
    trials, and between one CPU and all.
    """
    if side.host.processor.turbo:
        intel = (side.host.processor.frequency_driver or "").startswith("intel")
        value, file = ("1", "intel_pstate/no_turbo") if intel else ("0", "cpufreq/boost")
        yield Finding("turbo is on", remedy=f"echo {value} | sudo tee {CPU}/{file}")


@MACHINES.add(
    "unmitigated", "note", "kernel documentation, admin-guide/hw-vuln/",
    "nothing; the kernel's defaults: boot without mitigations=off",
)  # fmt: skip
def unmitigated(side: Side) -> Iterator[str]:
    """A mitigation costs time in each system call: machines with and without are not alike."""
    states = side.host.processor.vulnerabilities or {}
    vulnerable = [name for name, state in states.items() if state.startswith("Vulnerable")]
    if vulnerable:
        yield f"vulnerable: {', '.join(vulnerable)}"


@MACHINES.add(
    "huge-pages", "note", "kernel documentation, admin-guide/mm/transhuge.rst",
    "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
)  # fmt: skip
def huge_pages(side: Side) -> Iterator[str]:
    """The kernel makes huge pages of any memory: a server may stand still while it does, and its
    memory reads larger.
    """
    if side.host.memory.transparent_huge_pages == "always":
        yield "transparent huge pages: always"


@MACHINES.add("slow-clock", "warn", "kernel documentation, timers/timekeeping.rst; vdso(7)")
def slow_clock(side: Side) -> Iterator[Finding]:
    """Each look at the clock is a system call or a read of a device: what measures time spends
    it.
    """
    source, others = side.host.clock.source, side.host.clock.available or []
    if source and source not in FAST_CLOCKS:
        fast = next((other for other in others if other in FAST_CLOCKS), None)
        file = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        remedy = f"echo {fast} | sudo tee {file}" if fast else "boot with clocksource=tsc"
        yield Finding(f"clock source {source}", remedy=remedy)


@MACHINES.add(
    "clock-unsynchronised", "note", "adjtimex(2), STA_UNSYNC", "run chronyd or systemd-timesyncd"
)
def clock_unsynchronised(side: Side) -> Iterator[str]:
    """Nothing keeps the clock right: times of day in records are off. Latencies are not: each is
    taken from one host's monotonic clock.
    """
    if side.host.clock.synchronised is False:
        yield "the clock is not synchronised"


@MACHINES.add(
    "hosts-differ", "note", "lscpu(1), uname(1)", "nothing, or take equal ones", scope=clients
)
def hosts_differ(client: Side) -> Iterator[str]:
    """Server and client are not alike: what the client can offer does not tell what the server's
    machine can.
    """
    server = client.server.host
    pairs = {
        "kernel": (server.kernel, client.host.kernel),
        "CPU": (server.processor.model, client.host.processor.model),
    }
    differ = [f"{what} {a}, not {b}" for what, (a, b) in pairs.items() if a and b and a != b]
    if differ and client.audit.separate:
        yield f"the server has {'; '.join(differ)}"
