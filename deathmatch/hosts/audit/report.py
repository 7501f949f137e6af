"""An audit as text for a terminal: what was read, what is unknown, what was found."""

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence

from deathmatch.hosts.audit import facts
from deathmatch.hosts.audit.formats import cpu_ranges
from deathmatch.hosts.audit.rule import Finding, share
from deathmatch.hosts.audit.rules import SEVERITIES

TITLES = {"refuse": "refused", "warn": "warning", "note": "note"}
PART = 3  # at least so many columns between two columns of the table
LEAST_WIDTH = 60
UNIT = re.compile("_(hz|s|bytes|bit_per_s)$")

Cell = Callable[[facts.Host], str | None]


def _list(items: Iterable[object] | None) -> str | None:
    return None if items is None else ", ".join(map(str, items)) or "none"


def _yes(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"


def _of(value: float | None, form: Callable[[float], str]) -> str | None:
    return None if value is None else form(value)


def _smt(host: facts.Host) -> str | None:
    return _of(host.processor.smt_active, lambda on: "on" if on else "off")


def _busy(host: facts.Host) -> str | None:
    shares = host.load.busy_share
    if not shares:
        return None
    mean, busiest = sum(shares.values()) / len(shares), max(shares, key=shares.get)
    return f"{share(mean)} on average, {share(shares[busiest])} of CPU {busiest}"


def _vulnerabilities(host: facts.Host) -> str | None:
    known = host.processor.vulnerabilities
    if known is None:
        return None
    states = [state.partition(":")[0] for state in known.values()]
    counts = {what: sum(state.startswith(what) for state in states)
              for what in ("Mitigation", "Vulnerable", "Not affected")}  # fmt: skip
    return (
        f"{counts['Mitigation']} mitigated, {counts['Vulnerable']} open, "
        f"{counts['Not affected']} not concerned"
    )


def _offloads_off(host: facts.Host) -> str | None:
    known = host.interface.offloads
    return _list(None if known is None else [what for what, on in known.items() if not on])


def _interrupts(host: facts.Host) -> str | None:
    known = host.interface.interrupts
    if known is None:
        return None
    cpus = {cpu for of_one in known.values() for cpu in of_one}
    return f"{len(known)}, on CPUs {cpu_ranges(cpus)}" if known else "none"


def _ports(host: facts.Host) -> str | None:
    limits = host.limits
    if limits.ports is None:
        return None
    reuse = {True: ", reuse after 1 s", False: ", no reuse", None: ""}[limits.port_reuse]
    return f"{limits.port_first} to {limits.port_last}{reuse}"


ROWS: tuple[tuple[str, Cell], ...] = (
    ("kernel", lambda h: h.kernel),
    ("system", lambda h: h.system),
    ("CPU", lambda h: h.processor.model),
    ("hypervisor", lambda h: _of(h.processor.hypervisor, lambda name: name or "none")),
    ("CPUs online", lambda h: _of(h.processor.online, cpu_ranges)),
    ("SMT", _smt),
    ("NUMA nodes", lambda h: _list(
        None if h.processor.numa_nodes is None else
        [f"{node}: {cpu_ranges(cpus)}" for node, cpus in h.processor.numa_nodes.items()]
    )),
    ("governor", lambda h: _list(
        None if h.processor.governors is None else sorted({*h.processor.governors.values()})
    )),
    ("turbo", lambda h: _yes(h.processor.turbo)),
    ("highest frequency (GHz)", lambda h: _of(
        h.processor.frequency_max_hz, lambda hz: f"{hz / 1e9:.2f}"
    )),
    ("vulnerabilities", _vulnerabilities),
    ("memory available (GB)", lambda h: _of(h.memory.available_bytes, lambda b: f"{b / 1e9:.1f}")),
    ("transparent huge pages", lambda h: h.memory.transparent_huge_pages),
    ("clock source", lambda h: h.clock.source),
    ("clock synchronised", lambda h: _yes(h.clock.synchronised)),
    ("CPUs busy", _busy),
    ("stolen", lambda h: _of(h.load.steal_share, share)),
    ("waited for CPU, I/O, memory", lambda h: " / ".join(
        _of(one, share) or "unknown"
        for one in (h.load.cpu_pressure, h.load.io_pressure, h.load.memory_pressure)
    )),
    ("interface", lambda h: _of(
        h.interface.name, lambda name: f"{name} ({h.interface.kind or h.interface.driver})"
    )),
    ("MTU (bytes)", lambda h: _of(h.interface.mtu_bytes, str)),
    ("link speed (Gbit/s)", lambda h: _of(h.interface.speed_bit_per_s, lambda s: f"{s / 1e9:g}")),
    ("queueing discipline", lambda h: h.interface.queue_discipline),
    ("offloads off", _offloads_off),
    ("interrupts", _interrupts),
    ("open files of a process", lambda h: _of(h.limits.descriptors, lambda n: f"{n:,}")),
    ("source ports", _ports),
    ("connections tracked", lambda h: _of(h.limits.connections_tracked, lambda n: f"{n:,}")),
)  # fmt: skip


def text(
    audit: facts.Audit, found: Sequence[Finding], accepted: Sequence[str], width: int = 100
) -> str:
    """Return the whole report, at most `width` columns wide as far as words allow."""
    width = max(width, LEAST_WIDTH)
    parts = [_hosts(audit, width), _links(audit, width), _unknown(audit, width)]
    parts += [_finding(one, one.rule in accepted, width) for one in _joined(found)]
    parts.append(summary(found, accepted))
    return "\n\n".join(part for part in parts if part)


def summary(found: Sequence[Finding], accepted: Sequence[str]) -> str:
    """Return one line: how many findings of each severity there are."""
    refused = [one for one in found if one.severity == "refuse"]
    spared = sum(one.rule in accepted for one in refused)
    warned, noted = (sum(one.severity == which for one in found) for which in SEVERITIES[1:])
    left = len(refused) - spared
    verdict = "fit to measure" if not left else (
        f"not fit to measure ({left} refused; in spite of it: --accept RULE, or `accepts` in the "
        "testbed's file)"
    )  # fmt: skip
    accepts = f"{spared} accepted, " if spared else ""
    return f"{verdict}: {accepts}warnings: {warned}, notes: {noted}"


def _hosts(audit: facts.Audit, width: int) -> str:
    names = list(audit.hosts)
    rows = [("", names)] + [
        (what, [cell(host) or "unknown" for host in audit.hosts.values()]) for what, cell in ROWS
    ]
    rows.insert(1, ("CPUs used", [cpu_ranges(audit.cpus[name]) for name in names]))
    first = max(len(what) for what, _ in rows) + PART
    each = max(20, (width - first) // len(names))
    lines = []
    for what, cells in rows:
        wrapped = [textwrap.wrap(cell, each - PART) for cell in cells]
        for number in range(max(map(len, wrapped))):
            shown = [(part[number] if number < len(part) else "").ljust(each) for part in wrapped]
            lines.append(((what if number == 0 else "").ljust(first) + "".join(shown)).rstrip())
    return "\n".join(lines)


def _links(audit: facts.Audit, width: int) -> str:
    lines = []
    for client, link in audit.links.items():
        trips_s = (link.round_trip_min_s, link.round_trip_median_s, link.round_trip_p99_s)
        trips = [_of(one, lambda s: f"{1e6 * s:.3g}") or "unknown" for one in trips_s]
        carried = _of(link.bandwidth_bit_per_s, lambda b: f"{b / 1e9:.3g} Gbit/s") or "unknown"
        lines.append(
            f"link {client} to server: round trip {' / '.join(trips)} us (least / median / 99th "
            f"percentile), one connection carried {carried}, path MTU {link.path_mtu_bytes}"
        )
    return "\n".join(textwrap.fill(line, width, subsequent_indent="  ") for line in lines)


def _unknown(audit: facts.Audit, width: int) -> str:
    """Return what is unknown, each reason once."""
    reasons: dict[str, list[str]] = {}
    for host in audit.hosts.values():
        for part in (host.processor, host.memory, host.clock, host.load, host.interface,
                     host.limits):  # fmt: skip
            for name, reason in part.unknown.items():
                what = UNIT.sub("", name).replace("_", " ")
                if what not in reasons.setdefault(reason, []):
                    reasons[reason].append(what)
    lines = [f"unknown: {', '.join(names)} ({reason})" for reason, names in reasons.items()]
    return "\n".join(textwrap.fill(line, width, subsequent_indent="  ") for line in lines)


def _joined(found: Sequence[Finding]) -> list[Finding]:
    """Return the findings, those that differ in nothing but the host as one."""
    hosts: dict[Finding, list[str]] = {}
    for one in found:
        hosts.setdefault(one.model_copy(update={"host": ""}), []).append(one.host)
    return [one.model_copy(update={"host": ", ".join(names)}) for one, names in hosts.items()]


def _finding(found: Finding, accepted: bool, width: int) -> str:
    title = "accepted" if accepted and found.severity == "refuse" else TITLES[found.severity]
    head = f"{title}: {found.rule} ({found.host}): {found.read}"
    lines = [
        textwrap.fill(head, width, subsequent_indent="  "),
        textwrap.fill(f"{found.why} [{found.source}]", width, initial_indent="  ",
                      subsequent_indent="  "),
        # A command is not broken into lines.
        f"  mend: {found.mend}",
    ]  # fmt: skip
    return "\n".join(lines)
