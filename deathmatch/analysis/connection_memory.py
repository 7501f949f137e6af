"""What a connection costs the kernel by its state, from data/connections/<name>.json.

In: the record that `deathmatch connections` wrote. Out: bytes per connection of both ends, by state
and by what they are for, with intervals over repetitions.
"""

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from deathmatch.analysis import committed, stats
from deathmatch.analysis.interval import Interval

ESTABLISHED = "established, used"
# Caches of files and of processes: no socket has any of their objects.
_OTHERS = (
    r"^(\w*inode(_cache|_info)?|buffer_head|radix_tree_node|extent_status|vm_area_struct|maple_node"
    r"|anon_vma|mm_struct|task_struct|pid|signal_cache|sighand_cache|file_lock_cache|vmap_area"
    r"|(ext4|jbd2|xfs|btrfs|ovl|fuse|kernfs|kmalloc-rcl)[-_].*)$"
)
_SOCKETS = r"^(sock|lsm)_inode_cache$"
# A cache counts if it grew in each repetition by this much, objects per connection, and by about
# the same: the range is at most this share of the median.
LEAST, AGREEMENT = 0.05, 0.5
# What objects are for, by the names of their caches; equal caches go by the name of one of them.
PARTS = {
    "socket": r"TCP(v6)?$|tw_sock|request_sock",
    "file": r"sock_inode|filp|dentry|lsm_",
    "port, event loop": r"eventpoll|tcp_bind|anon_vma_chain|ep_head",
    "data": r"skbuff|pool_workqueue|kmalloc-cg",
    "accounting": r"kmalloc",
}
REST = "other"
KEY = ["life", "state", "connections"]
SCHEMA = {
    "life": pl.String, "state": pl.String, "connections": pl.Int64, "repetition": pl.Int64,
    "cache": pl.String, "per_connection": pl.Float64, "size_bytes": pl.Int64,
    "share_bytes": pl.Float64,
}  # fmt: skip


@dataclass(frozen=True)
class Record(committed.Record):
    """One file of data/connections/: what the machine is, and every reading."""

    @cached_property
    def objects(self) -> pl.DataFrame:
        """A row for each cache of each reading, with the columns of SCHEMA."""
        rows = [
            {**{name: reading[name] for name in (*KEY, "repetition")}, "cache": cache, **grown}
            for reading in self.readings
            for cache, grown in (reading["objects"] or {}).items()
        ]
        return pl.DataFrame(rows, schema=SCHEMA)

    @property
    def connections(self) -> int:
        """How many connections were held in each state."""
        return min((reading["connections"] for reading in self.readings), default=0)

    @property
    def most(self) -> int:
        """How many connections were held at once, established at both ends, at most."""
        return max(
            (
                reading["connections"]
                for reading in self.readings
                if reading["state"] == ESTABLISHED
            ),
            default=0,
        )

    @property
    def processes(self) -> int:
        """How many processes held the most connections, at each end."""
        return max((reading["processes"] for reading in self.readings), default=0)


def load(dataset: str) -> Record:
    """Return the dataset's own record, or the committed one; UserError as in `committed.load`."""
    return committed.load("connections", dataset, Record)


def counted(objects: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of caches that connections account for, with `part`.

    Which caches these are is decided at LEAST connections.
    """
    name = pl.col("cache").str
    kept = objects.filter(~name.contains(_OTHERS) | name.contains(_SOCKETS))
    times = kept.group_by(KEY, maintain_order=True).agg(
        pl.col("repetition").n_unique().alias("repetitions")
    )
    grown = pl.col("per_connection")
    agreed = (
        kept.group_by(*KEY, "cache", maintain_order=True)
        .agg(pl.len().alias("found"), least=grown.min(), range=grown.max() - grown.min(),
             middle=grown.median())
        .join(times, on=KEY)
        .filter(
            pl.col("found") == pl.col("repetitions"), pl.col("least") >= LEAST,
            pl.col("range") <= AGREEMENT * pl.col("middle"),
        )
    )  # fmt: skip
    part = pl.lit(REST)
    for name, pattern in reversed(PARTS.items()):
        part = (
            pl.when(pl.col("cache").str.contains(f"^({pattern})"))
            .then(pl.lit(name))
            .otherwise(part)
        )
    return kept.join(agreed.select(*KEY, "cache"), on=[*KEY, "cache"]).with_columns(part=part)


def totals(objects: pl.DataFrame) -> pl.DataFrame:
    """Return bytes per connection of both ends: KEY, repetition, size_bytes, share_bytes.

    By the objects' own sizes, and by their shares of slabs, which is what the memory loses.
    """
    grown = pl.col("per_connection")
    return counted(objects).group_by(*KEY, "repetition", maintain_order=True).agg(
        size_bytes=(grown * pl.col("size_bytes")).sum(),
        share_bytes=(grown * pl.col("share_bytes")).sum(),
    )  # fmt: skip


def by_state(objects: pl.DataFrame, column: str = "share_bytes") -> pl.DataFrame:
    """Return the interval of bytes per connection for each state and number: KEY, INTERVAL."""
    return stats.summarise(totals(objects), KEY, column)


def by_part(objects: pl.DataFrame) -> pl.DataFrame:
    """Return the mean bytes per connection of each part of each state: KEY, part, bytes."""
    grown = pl.col("per_connection") * pl.col("share_bytes")
    repetitions = counted(objects).group_by(*KEY, "part", "repetition", maintain_order=True).agg(
        grown.sum().alias("bytes")
    )  # fmt: skip
    return repetitions.group_by(*KEY, "part", maintain_order=True).agg(pl.col("bytes").mean())


def state_bytes(objects: pl.DataFrame, state: str, connections: int) -> Interval:
    """Return the interval of a state's bytes per connection, of both ends, from that many."""
    mine = totals(objects).filter(state=state, connections=connections)
    return stats.interval(mine["share_bytes"].to_list())


def slab_bytes(record: Record, state: str, connections: int) -> Interval:
    """Return the interval of what all slabs grew by in a state, per connection (Slab of meminfo).

    It is of the whole machine: what else ran there took and gave slabs too.
    """
    grown = [
        reading["memory"]["Slab"] / connections
        for reading in record.readings
        if (reading["state"], reading["connections"]) == (state, connections)
    ]
    return stats.interval(grown)


def tcp_pages(record: Record, state: str) -> Interval:
    """Return the interval of pages per connection that the kernel counts for TCP in a state."""
    counted_pages = [
        reading["tcp_pages"] / reading["connections"]
        for reading in record.readings
        if reading["state"] == state and reading["connections"] == record.connections
    ]
    return stats.interval(counted_pages)


def tcp_limit(record: Record) -> int | None:
    """Return the pages from which on the kernel saves: the second of net.ipv4.tcp_mem, if known."""
    words = record.about["limits"]["net.ipv4.tcp_mem"].split()
    return int(words[1]) if words else None
