"""The tidy tables of a dataset: their schemas, and how to read them.

`data/<dataset>/<experiment>/<table>.parquet`, one row for each

- `trials`: trial, with what it ran on and how it ended;
- `points`: offered rate of a trial, with httperf's report and the kernel's counters;
- `times`: bin of a point's histogram of one quantity, such as connection time;
- `samples`: sample of counters, as `deathmatch.data.kernel_samples` describes;
- `seconds`: second of a point, with its latencies, where the client records when each was due;
- `probes`: rate that a trial's search for the server's capacity offered, with how much of what was
  due was late; the last one's row has what the search came to (`deathmatch.data.probes`). Where
  `step` is "overload" it is `capacity_share` times the capacity, offered for `duration_us` to the
  variant's own listen backlog. There is no such table where the dataset asks for no search.

A point is held against `deathmatch.data.laws`: `laws_judged` has the IDs of those that could judge
it, `laws_broken` of those that it breaks; both are null where none could. `course` is "plateau",
"drifting" or "staircase", what the measured quantity did while all load was offered, and
`course_change` by which share of its median; null where the run was too short to tell, or the load
generator does not.

`least_busy_process_share` is the CPU time of the least busy of a server's workers, processes or
scheduler threads, over that of all; null for one worker, and where nobody counted. `limit` and what
it is told from are those of `deathmatch.data.limits`.

Several clients make one point: counts and histograms are their sums, the client's lag and CPU those
of the client that is worst off, `client_limited` is true if any was. What cannot be known of all is
null, for the reason in `unknown_of_several` of the load generator. `load_generator` in `trials` is
the program that offered the load: the experiment's own, unless the factor of that name has another
level. The columns of `points` are those of the experiment's own. `trials` has how many clients
offered load, how late after the agreed time one of them began at most (`late_us`), and by how much
the offset between two hosts' clocks may be wrong (`clock_bound_us`); both are null where one
client was on the server's machine. `machines` are the hosts, described, where each is a machine of
its own.

Every table begins with `server`, `variant`, `configuration`, the experiment's factors and the
trial's number `n`. A factor that the server does not have is null.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pandera.polars as pa
import polars as pl

from deathmatch.capacity_search import search
from deathmatch.data import laws, limits, probes, steadiness, table_files
from deathmatch.data.kernel_samples import RUN_DELAYS
from deathmatch.data.kernel_samples import SCHEMA as SAMPLES
from deathmatch.errors import UserError
from deathmatch.load import histogram, registry
from deathmatch.load.generator import FIRST_WRONG
from deathmatch.plan import files
from deathmatch.plan.dataset import PROBES
from deathmatch.plan.record import OUTCOMES
from deathmatch.plan.trial import CONFIGURATION

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

_TRIALS = {
    "title": pl.String,
    "language": pl.String,
    "version": pl.String,
    "outcome": pl.String,
    "reason": pl.String,
    "started_at": pl.Datetime("us", "UTC"),
    "wall_us": pl.Int64,
    "offering_us": pl.Int64,
    "testbed": pl.String,
    "descriptors": pl.Int64,
    "throttle": pl.String,
    "server_cpus": pl.List(pl.Int64),
    "client_cpus": pl.List(pl.Int64),
    "clients": pl.Int64,
    "late_us": pl.Int64,
    "clock_bound_us": pl.Int64,
    "machines": pl.List(pl.String),
    "load_generator": pl.String,
    "cpu": pl.String,
    "cpus": pl.Int64,
    "memory_bytes": pl.Int64,
    "kernel": pl.String,
    "os": pl.String,
    "toolchain": pl.String,
    "commit": pl.String,
    "stopped_on_sigterm": pl.Boolean,
    "deviations": pl.List(pl.String),
    "syscalls_per_reply": pl.Float64,
    "waits_per_reply": pl.Float64,
}

# Counters of `samples` that grow: a point has their growth while its rate was offered and drained.
GROWING = [
    "server_listen_overflows", "server_listen_drops", "server_syncookies_sent",
    "server_passive_opens", "server_retransmitted_segments", "server_resets_sent",
    "client_active_opens", "client_attempt_fails", "client_syn_retransmissions",
    *(name for name in SAMPLES if name.startswith(("cpu_", "server_cpus_"))),
    "client_received_bytes", "client_received_segments",
    "client_sent_bytes", "client_sent_segments",
    "context_switches", "interrupts", "server_cpu_ns",
]  # fmt: skip
HIGHEST = ["accept_queue_connections", "syn_queue_connections", "server_rss_bytes",
           "server_pss_bytes",
           "server_descriptors", "client_descriptors", "server_threads",
           "load_average"]  # fmt: skip

# Columns that a file lacks where no trial has them.
SELDOM = (
    "least_busy_process_share", "replies_wrong_content", "answers_unasked", FIRST_WRONG,
    *RUN_DELAYS, *limits.SHARES,
)  # fmt: skip

_POINTS = {
    "offered_rate_rps": pl.Int64,
    "duration_us": pl.Int64,
    "fresh_start": pl.Boolean,
    "server_state": pl.String,
    "client_state": pl.String,
    "idle_held": pl.Int64,
    "report": pl.String,
    "actual_rate_rps": pl.Float64,
    "client_limited": pl.Boolean,
    "least_busy_process_share": pl.Float64,
}
_COURSE = {"course": pl.String, "course_change": pl.Float64}
_COUNTED = dict.fromkeys(GROWING, pl.Int64) | {f"{name}_max": SAMPLES[name] for name in HIGHEST}
_STORAGE = {"messages": pl.Int64, "runtime_bytes": pl.Int64, "rss_bytes": pl.Int64}

_TIMES = {"offered_rate_rps": pl.Int64} | histogram.SCHEMA

# The columns of which no two rows have the same values.
_ONCE = {
    "trials": ("server", "variant", "n"),
    "points": ("server", "variant", "n", "offered_rate_rps", "messages"),
}

_SECONDS = {"offered_rate_rps": pl.Int64} | histogram.SECONDS


def keys(experiment: str) -> dict[str, type[pl.DataType]]:
    """Return the columns that name a row's trial, with their types."""
    factors = files.experiment(experiment).factors
    kinds = {
        name: pl.Int64 if all(isinstance(level, int) for level in factor.levels) else pl.String
        for name, factor in factors.items()
    }
    return {
        "server": pl.String,
        "variant": pl.String,
        CONFIGURATION: pl.String,
        **kinds,
        "n": pl.Int64,
    }


def columns(experiment: str, table: str) -> dict[str, type[pl.DataType]]:
    """Return a table's columns in order, with their types."""
    client = files.experiment(experiment).client
    load = registry.generator(client).columns | _COUNTED | _COURSE if client else {}
    points = (_POINTS | load | limits.COLUMNS if client else _STORAGE) | laws.MARKS
    own = {"trials": _TRIALS, "points": points, "times": _TIMES, "samples": SAMPLES,
           "seconds": _SECONDS, PROBES: probes.COLUMNS}  # fmt: skip
    return keys(experiment) | own[table]


def schema(experiment: str, table: str) -> pa.DataFrameSchema:
    """Return a table's schema: columns, types, and what the values of our own columns must be.

    A trial, and a point of it, is there once: two measurements of one would be one too many.
    Those of a load generator's report are checked as it is read (`load.generator.checked`).
    """
    always = {"server", "variant", "n", "outcome", "server_state", "messages"}
    checks = {
        "n": [pa.Check.ge(1)],
        "offered_rate_rps": [pa.Check.ge(0)],
        "outcome": [pa.Check.isin(search.OUTCOMES if table == PROBES else OUTCOMES)],
        "step": [pa.Check.isin(search.STEPS)],
        "report": [pa.Check.isin(["whole", "truncated"])],
        "limit": [pa.Check.isin(limits.LIMITS)],
        "course": [pa.Check.isin([steadiness.PLATEAU, steadiness.DRIFTING, steadiness.STAIRCASE])],
    }
    return pa.DataFrameSchema(
        {
            name: pa.Column(
                kind,
                checks.get(name, []),
                nullable=name not in always or (table, name) == (PROBES, "outcome"),
            )
            for name, kind in columns(experiment, table).items()
        },
        strict=True,
        ordered=True,
        unique=[name for name in _ONCE.get(table, ()) if name in columns(experiment, table)]
        or None,
    )


def read(dataset: str, experiment: str, table: str) -> pl.DataFrame:
    """Return one table of a dataset; UserError if it is absent or has other columns or types.

    Values are checked when it is written, and by the strict check.
    """
    path = _existing(dataset, experiment, table)
    return _fitting(pl.read_parquet(path), experiment, table, path)


def scan(dataset: str, experiment: str, table: str) -> pl.LazyFrame:
    """Return one table of a dataset, of which only what is collected is read.

    Raises UserError as `read` does.
    """
    path = _existing(dataset, experiment, table)
    # Else polars 1.40 filters as it decodes, and fails at a column of differences that has nulls.
    frame = pl.scan_parquet(path, parallel="row_groups")
    return _fitting(frame, experiment, table, path)


def _fitting(frame: Frame, experiment: str, table: str, path: Path) -> Frame:
    wanted = columns(experiment, table)
    whole = _with_seldom(frame, wanted)
    if list(whole.collect_schema().items()) == list(wanted.items()):
        return whole
    return check(frame, experiment, table, str(path.relative_to(table_files.ROOT)))


def _existing(dataset: str, experiment: str, table: str) -> Path:
    path = table_files.path_of(dataset, experiment, table)
    if not path.is_file():
        where = str(path.relative_to(table_files.ROOT))
        raise UserError("no such table", where, f"run: snakemake --config dataset={dataset}")
    return path


_LOAD_GENERATOR = rf"\b{registry.FACTOR}=[^,]*"
"""The level of the factor in a variant's name, which has one where it is not the default."""


def of_own_client(frame: Frame) -> Frame:
    """Return a table's rows of the experiment's own load generator.

    Trials of another one in its place answer another question: what the client contributes.
    """
    return frame.filter(~pl.col("variant").str.contains(_LOAD_GENERATOR))


def of_any_client(frame: Frame) -> Frame:
    """Return a table of what a server can do, whichever load generator found it out.

    Variants are named as if the experiment's own had; where both did, the rows are its own.
    """
    key = ["server", "variant", "n"]
    foreign = pl.col("variant").str.contains(_LOAD_GENERATOR)
    without = pl.col("variant").str.replace(_LOAD_GENERATOR, "")
    named = without.str.strip_chars(",").str.replace(",,", ",")
    own, others = (
        frame.filter(~foreign),
        frame.filter(foreign).with_columns(
            variant=pl.when(named == "").then(pl.lit("default")).otherwise(named)
        ),
    )
    return pl.concat([own, others.join(own, on=key, how="anti", maintain_order="left")])


def of_main_client(frame: pl.DataFrame) -> Callable[[Frame], Frame]:
    """Return which rows show a dataset, by a table of it: `of_own_client`, or `of_any_client`.

    The latter where another client measured most trials, so that no two are compared by chance.
    """
    trials = frame.select("server", "variant", "n").unique()
    return of_own_client if 2 * len(of_own_client(trials)) >= len(trials) else of_any_client


def check(frame: Frame, experiment: str, table: str, where: str) -> Frame:
    """Return the frame if it fits its schema, else raise a UserError that names the column.

    Columns of SELDOM that it lacks are added, as null.
    """
    try:
        return schema(experiment, table).validate(_with_seldom(frame, columns(experiment, table)))
    except pa.errors.SchemaError as error:
        raise UserError(str(error).splitlines()[0], where, "make it again: delete it") from None


def _with_seldom(frame: Frame, wanted: dict[str, type[pl.DataType]]) -> Frame:
    known = frame.collect_schema().names()
    absent = [name for name in SELDOM if name in wanted and name not in known]
    if not absent or set(wanted) - set(absent) != set(known):
        return frame
    return frame.with_columns(pl.lit(None, wanted[name]).alias(name) for name in absent).select(
        *wanted
    )


def write(frame: pl.DataFrame, experiment: str, table: str, folder: Path) -> None:
    """Check the frame and write it into the folder, whole or not at all."""
    path = folder / f"{table}.parquet"
    partial = path.with_suffix(".partial")
    checked = check(frame, experiment, table, str(path))
    checked = checked.drop(
        name for name in SELDOM if name in checked.columns and checked[name].is_null().all()
    )
    # Times stand in order: their differences take half the room, and polars' own writer has none.
    integers = [name for name, kind in checked.schema.items() if kind.is_integer()]
    encoding = {
        "use_dictionary": [name for name in checked.columns if name not in integers],
        "column_encoding": dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
    }
    # A missing list that still spans values, as polars' when() leaves one, is more than pyarrow 23
    # can write: taking its values apart and together again leaves none.
    lists = [name for name, kind in checked.schema.items() if isinstance(kind, pl.List)]
    apart = (pl.Series(name, checked[name].to_list(), frame.schema[name]) for name in lists)
    checked.with_columns(*apart).write_parquet(
        partial,
        compression="zstd",
        compression_level=19,
        use_pyarrow=True,
        pyarrow_options=encoding,
    )
    partial.rename(path)
