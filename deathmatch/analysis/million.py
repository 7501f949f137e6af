"""A million connections and ten million messages a second: constants, machines, checks.

In: points of the experiments c10k and readiness; a record of `connection_memory`. Out: costs for
`capacity`, tables of what is asked for, and what formulas and simulation say of measured points.
"""

import polars as pl

from deathmatch.analysis import c10k, capacity, capacity_model, connection_memory, stats
from deathmatch.analysis.capacity import Cost, Machine, Target
from deathmatch.analysis.connection_memory import Record
from deathmatch.analysis.interval import Interval
from deathmatch.analysis.reply_rates import RATE, REPLY
from deathmatch.plan import files
from deathmatch.quantities.definitions import CPU_PER_REPLY

CONNECTIONS, RATE_PER_S = 1_000_000, 10_000_000
# The null servers: nothing but system calls, so the least that a server of this machine needs.
NULL, BUSY = "ws-null", "c-readiness"
# Assumed, not measured here.
ASSUMED = Machine(
    cpus=64, memory_bytes=256e9, link_bits_per_s=25e9, descriptors=1 << 20, addresses=4
)
ASSUMED_LINK = 10e9
# What a simulation offers, and how much more than is borne where it is to be too much.
MESSAGES, OVERLOAD = 20_000, 1.3


def per_message(points: pl.DataFrame) -> pl.DataFrame:
    """Return each sound point of c10k on one CPU, unthrottled, with its costs.

    Columns: server, label, n, server_us and client_us (CPU time per message echoed, the opening of
    connections included), server_bytes and client_bytes (resident set per connection).
    """
    return c10k.as_planned(points).filter(
        pl.col("environment") == "unthrottled", pl.col("schedulers") == "one",
        pl.col("replies") > 0,
    ).select(
        "server", "label", "n", "client_loop_busy_share", "connections", "duration_us", "replies",
        server_us=CPU_PER_REPLY.of_trial.of_point(),
        client_us=pl.col("client_cpu_us") / pl.col("replies"),
        server_bytes="server_rss_per_connection_bytes",
        client_bytes=pl.col("client_rss_peak_bytes") / pl.col("connections"),
    )  # fmt: skip


def at_saturation(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points of readiness in closed loop, by epoll and without idle connections.

    Columns: server, label, n, server_us, client_us, and the reply rate that was reached.
    """
    cpu = pl.col("client_cpu_user_us") + pl.col("client_cpu_system_us")
    return points.filter(
        pl.col(RATE) == 0, pl.col("idle_connections") == 0,
        pl.col("readiness") == "epoll", pl.col("replies") > 0,
    ).select(
        "server", "label", "n",
        server_us=CPU_PER_REPLY.of_trial.of_point(),
        client_us=cpu / pl.col("replies"),
        rate_per_s=pl.col(REPLY),
    )  # fmt: skip


def median(frame: pl.DataFrame, column: str, server: str) -> float | None:
    """Return the median of a server's trials; None without one."""
    return frame.filter(server=server)[column].median()


def costs(messages: pl.DataFrame, record: Record) -> tuple[Cost, Cost] | None:
    """Return what the null server and its client need, by c10k; None where it was not measured.

    An end has half of the kernel's memory of both.
    """
    kernel = connection_memory.state_bytes(
        record.objects, connection_memory.ESTABLISHED, record.connections
    )
    values = [
        median(messages, name, NULL)
        for name in ("server_us", "server_bytes", "client_us", "client_bytes")
    ]
    if None in values or kernel.estimate is None:
        return None
    server_us, server_bytes, client_us, client_bytes = values
    half = kernel.estimate / 2
    return Cost(server_us, half, server_bytes), Cost(client_us, half, client_bytes)


def busy_costs(made: tuple[Cost, Cost], saturated: pl.DataFrame) -> tuple[Cost, Cost] | None:
    """Return the same with the CPU time of who never sleeps; None where it was not measured."""
    server_us, client_us = (median(saturated, name, BUSY) for name in ("server_us", "client_us"))
    if server_us is None or client_us is None:
        return None
    server, client = made
    return (
        Cost(server_us, server.kernel_bytes, server.process_bytes),
        Cost(client_us, client.kernel_bytes, client.process_bytes),
    )


def target(message_bytes: int) -> Target:
    """Return what is asked: a million connections, ten messages a second on each."""
    return Target(CONNECTIONS, RATE_PER_S, message_bytes)


def this_machine(trials: pl.DataFrame) -> Machine | None:
    """Return what the machine of the trials has, with a link as ASSUMED_LINK; None if unknown."""
    known = trials.drop_nulls("cpu")
    if known.is_empty():
        return None
    row = known.row(0, named=True)
    return Machine(row["cpus"], row["memory_bytes"], ASSUMED_LINK, ASSUMED.descriptors, 4)


def asked(
    wanted: Target, made: dict[str, tuple[Cost, Cost]], kinds: dict[str, Machine]
) -> pl.DataFrame:
    """Return for each kind of machine, side and cost how many each resource asks for.

    Columns: machine, cost, side, the resources of `capacity`, and "first", which asks for most.
    """
    rows = []
    for kind, machine in kinds.items():
        for name, (server, client) in made.items():
            for side, cost, serves in (("server", server, True), ("clients", client, False)):
                machines = capacity.machines(wanted, cost, machine, serves)
                rows.append({
                    "machine": kind, "cost": name, "side": side,
                    **{resource: machines.get(resource) for resource in RESOURCES},
                    "first": capacity.first(machines),
                })  # fmt: skip
    return pl.DataFrame(rows, schema=_ASKED)


RESOURCES = (
    capacity.CPU, capacity.MEMORY, capacity.PORTS, capacity.DESCRIPTORS, capacity.TO_SERVER,
    capacity.FROM_SERVER,
)  # fmt: skip
_ASKED = {
    "machine": pl.String, "cost": pl.String, "side": pl.String,
    **dict.fromkeys(RESOURCES, pl.Int64), "first": pl.String,
}  # fmt: skip


def constants(made: dict[str, tuple[Cost, Cost]]) -> pl.DataFrame:
    """Return a row for each cost and side: cpu_us, kernel_bytes, process_bytes."""
    rows = [
        (name, side, cost.cpu_us, cost.kernel_bytes, cost.process_bytes)
        for name, pair in made.items()
        for side, cost in zip(("server", "client"), pair)
    ]
    columns = ["cpu_us", "kernel_bytes", "process_bytes"]
    schema = {"cost": pl.String, "side": pl.String, **dict.fromkeys(columns, pl.Float64)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def by_server(messages: pl.DataFrame, record: Record, wanted: Target) -> pl.DataFrame:
    """Return for each server its CPU time of a message, and the CPUs and memory that are wanted.

    Columns: label, trials, server_us, cpus, memory_gb; medians of trials, cheapest first.
    """
    kernel = connection_memory.state_bytes(
        record.objects, connection_memory.ESTABLISHED, record.connections
    )
    half = (kernel.estimate or 0) / 2
    marked = pl.col("server").is_in(files.instruments())
    made = messages.group_by("label", "server", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("trials"), pl.col("server_us", "server_bytes").median()
    )
    return made.select(
        pl.when(marked).then(pl.col("label") + r" \*").otherwise("label").alias("label"),
        "trials", "server_us",
        cpus=pl.col("server_us") * wanted.rate_per_s / 1e6,
        memory_gb=(pl.col("server_bytes") + half) * wanted.connections / 1e9,
    ).sort("server_us")  # fmt: skip


def checked(
    wanted: Target, made: dict[str, tuple[Cost, Cost]], kinds: dict[str, Machine]
) -> pl.DataFrame:
    """Return what formulas and simulation say of one server with its share of the clients.

    Columns: machine, cost, load ("enough": its share of what is wanted; "too much": OVERLOAD times
    what the formulas say that it bears), formula, simulated, ratio. Servers share nothing, so that
    one stands for all.
    """
    rows = []
    for kind, machine in kinds.items():
        for name, (server, client) in made.items():
            servers = max(capacity.machines(wanted, server, machine, server=True).values())
            clients = max(capacity.machines(wanted, client, machine).values())
            share = Target(
                wanted.connections // servers, wanted.rate_per_s / servers, wanted.message_bytes
            )
            count = -(-clients // servers)
            bears = capacity.rate_per_s(
                share, [(server, machine, True, 1), (client, machine, False, count)]
            )
            for load, rate in (("enough", share.rate_per_s), ("too much", OVERLOAD * bears)):
                offered = Target(share.connections, rate, share.message_bytes)
                formula = min(rate, bears)
                simulated = _simulated(offered, (server, machine), (client, machine), count)
                rows.append((kind, name, load, formula, simulated, simulated / formula))
    columns = ["machine", "cost", "load"]
    schema = dict.fromkeys(columns, pl.String) | dict.fromkeys(
        ["formula", "simulated", "ratio"], pl.Float64
    )
    return pl.DataFrame(rows, schema=schema, orient="row")


def _simulated(
    load: Target, server: tuple[Cost, Machine], client: tuple[Cost, Machine], clients: int
) -> float:
    seconds = MESSAGES / load.rate_per_s
    return capacity_model.exchanged(load, server, client, clients, seconds).rate_per_s


def loop_busy(messages: pl.DataFrame) -> tuple[Interval, Interval]:
    """Return how busy wsload's loop was with the null server: measured by itself, then by formula.

    A share of one CPU, as intervals; the formula is CPU time of a message times messages a second.
    """
    mine = messages.filter(server=NULL).with_columns(
        formula=pl.col("client_us") * pl.col("replies") / pl.col("duration_us")
    )
    columns = ("client_loop_busy_share", "formula")
    return tuple(stats.interval(mine[column].to_list()) for column in columns)


def checked_saturation(saturated: pl.DataFrame, message_bytes: int) -> pl.DataFrame:
    """Return for each server what formula and simulation say of its rate at saturation.

    One CPU each side; columns: label, trials, measured (req/s), formula, simulated, ratio (measured
    over formula, median of trials).
    """
    rows = []
    for (label,), mine in saturated.group_by("label", maintain_order=True):
        machine = Machine(1, 1e9, 1e12, 1 << 20)
        server, client = (Cost(mine[name].median(), 0, 0) for name in ("server_us", "client_us"))
        bears = capacity.rate_per_s(
            Target(1000, 1.0, message_bytes),
            [(server, machine, True, 1), (client, machine, False, 1)],
        )
        load = Target(1000, OVERLOAD * bears, message_bytes)
        model = capacity_model.exchanged(
            load, (server, machine), (client, machine), 1, MESSAGES / load.rate_per_s
        )
        measured = stats.interval(mine["rate_per_s"].to_list())
        rows.append({
            "label": label, "trials": measured.trials, "measured": measured.estimate,
            "formula": bears, "simulated": model.rate_per_s,
            "ratio": measured.estimate / bears,
        })  # fmt: skip
    return pl.DataFrame(rows, schema=_CHECKED).sort("measured", descending=True)


_CHECKED = {
    "label": pl.String, "trials": pl.Int64, "measured": pl.Float64, "formula": pl.Float64,
    "simulated": pl.Float64, "ratio": pl.Float64,
}  # fmt: skip
