"""A trial's `samples.csv`: the columns that `measure.sampler` writes, and their reader.

Network counters (proc(5)) count from the start of a host's namespace. The load average is that of
the whole machine.
"""

from pathlib import Path

import polars as pl

from deathmatch.agent.kernel import MODES, USED
from deathmatch.data import records
from deathmatch.errors import UserError

# Column -> (side, file, group and counter). SYNs are sent again (TCPSynRetrans) by the client.
COUNTERS = {
    "server_listen_overflows": ("server", "netstat", "TcpExt ListenOverflows"),
    "server_listen_drops": ("server", "netstat", "TcpExt ListenDrops"),
    "server_syncookies_sent": ("server", "netstat", "TcpExt SyncookiesSent"),
    "server_passive_opens": ("server", "snmp", "Tcp PassiveOpens"),
    "server_retransmitted_segments": ("server", "snmp", "Tcp RetransSegs"),
    "server_resets_sent": ("server", "snmp", "Tcp OutRsts"),
    "server_established": ("server", "snmp", "Tcp CurrEstab"),
    "client_active_opens": ("client", "snmp", "Tcp ActiveOpens"),
    "client_attempt_fails": ("client", "snmp", "Tcp AttemptFails"),
    "client_syn_retransmissions": ("client", "netstat", "TcpExt TCPSynRetrans"),
    "client_established": ("client", "snmp", "Tcp CurrEstab"),
    "client_received_bytes": ("client", "netstat", "IpExt InOctets"),
    "client_received_segments": ("client", "snmp", "Tcp InSegs"),
    "client_sent_bytes": ("client", "netstat", "IpExt OutOctets"),
    "client_sent_segments": ("client", "snmp", "Tcp OutSegs"),
}
SOCKETS = {
    "server_time_wait": ("server", "sockstat", "TCP tw"),
    "server_tcp_sockets": ("server", "sockstat", "TCP alloc"),
    "client_time_wait": ("client", "sockstat", "TCP tw"),
}
MACHINE = [f"cpu_{mode}_us" for mode in MODES] + ["context_switches", "interrupts"]
SERVER_CPUS = [f"server_cpus_{mode}_us" for mode in MODES]
LOAD = "load_average"
QUEUES = ["accept_queue_connections", "accept_queue_limit", "syn_queue_connections"]
RUN_DELAYS = ["server_run_delay_ns", "client_run_delay_ns"]

SCHEMA = {
    "time_us": pl.Int64,
    "offered_rate_rps": pl.Int64,
    **dict.fromkeys(COUNTERS, pl.Int64),
    **dict.fromkeys(SOCKETS, pl.Int64),
    **dict.fromkeys(QUEUES, pl.Int64),
    **dict.fromkeys([*MACHINE, *SERVER_CPUS], pl.Int64),
    LOAD: pl.Float64,
    **{f"{side}_{what}": pl.Int64 for side in ("server", "client") for what in USED},
    "server_pss_bytes": pl.Int64,
}


def read(file: Path) -> pl.DataFrame:
    """Return the samples, with the columns of SCHEMA; no row if there is no file.

    A counter that was not yet sampled is null. Raises UserError for a file that is cut, has unknown
    columns, or has impossible values.
    """
    wanted = pl.DataFrame(schema=SCHEMA)
    if not file.exists():
        return wanted
    content = file.read_bytes()
    if not content.endswith(b"\n"):
        # Its last number may lack digits.
        raise _wrong("the last line has no end", file, content.count(b"\n") + 1)
    header, *lines = content[:-1].split(b"\n")
    names = header.decode(errors="replace").split(",")
    if len(set(names)) < len(names) or not {*names} <= {*SCHEMA} or "time_us" not in names:
        raise _wrong("its first line does not name the columns of samples", file, 1)
    for number, line in enumerate(lines, 2):
        if line.count(b",") != len(names) - 1:
            raise _wrong(f"not {len(names)} values", file, number)
    try:
        samples = pl.read_csv(content, schema=dict.fromkeys(names, pl.String), quote_char=None)
        samples = samples.cast({name: SCHEMA[name] for name in names})
    except pl.exceptions.PolarsError as error:
        raise _wrong(str(error).splitlines()[0][:200], file) from None
    for name in names:
        known = samples[name].drop_nulls()
        if not (known.is_finite() & (known >= 0)).all():
            raise _wrong(f"a number of {name} cannot be", file)
    if samples["time_us"].has_nulls() or not samples["time_us"].is_sorted():
        raise _wrong("the samples are not in the order of their time", file)
    return pl.concat([wanted, samples], how="diagonal")


def growth(counter: pl.Series) -> int | None:
    """Return the growth of a counter from its first sample to its last; None if it is unknown."""
    known = counter.drop_nulls()
    # The count of a process that ended is missing from the sum, so that it may fall.
    grown = known[-1] - known[0] if len(known) > 1 else None
    return None if grown is None or grown < 0 else grown


def _wrong(what: str, file: Path, line: int = 0) -> UserError:
    where = f"{file}, line {line}" if line else str(file)
    return UserError(what, where, records.remedy(file))
