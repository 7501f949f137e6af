"""The tidy tables of a dataset: their schemas, and how to read them.

`data/<dataset>/<experiment>/<table>.parquet` has a row for each

- `trials`: trial, with its machine and outcome;
- `points`: offered rate of a trial, with the load generator's report and the kernel's counters;
- `times`: bin of a point's histogram of one quantity, such as connection time;
- `samples`: sample of counters (`deathmatch.data.kernel_samples`);
- `seconds`: second of a point, with its latencies, if the client records when each was due;
- `probes`: rate offered by a trial's search for the server's capacity, with the counts of late
  replies; the last row has the search's result (`deathmatch.data.probes`). Where `step` is
  "overload", the rate is `capacity_share` times the capacity, offered for `duration_us` to the
  variant's own listen backlog. Datasets without a search have no such table.

A point is checked by `deathmatch.data.laws`: `laws_judged` has the IDs of the laws that apply,
`laws_broken` of those that are broken; both are null if none applies. `course` is "plateau",
"drifting" or "staircase", for the measured quantity while all load was offered, and `course_change`
its change as a share of its median; both are null if the run was too short, or the load generator
does not report it.

`least_busy_process_share` is the CPU time of the least busy of a server's workers (processes or
scheduler threads) over that of all; null for one worker, and if not counted. `limit` and the ratios
that decide it are those of `deathmatch.data.limits`.

Several clients make one point: counts and histograms are sums, the client's lag and CPU are those
of the client with the worst, `client_limited` is true if any was. Columns that cannot be known of
all are null, for the reason in `unknown_of_several` of the load generator. `load_generator` in
`trials` is the program that offered the load, but `points` has the columns of the experiment's own.
`trials` has the number of clients, the latest start of one after the agreed time (`late_us`), and
the greatest error of the offset between two hosts' clocks (`clock_bound_us`); both are null if one
client was on the server's machine. `machines` describes the hosts if they are separate machines.

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
from deathmatch.data.laws.law import TRIAL
from deathmatch.errors import UserError
from deathmatch.load import histogram, registry
from deathmatch.load.generator import FIRST_WRONG
from deathmatch.plan import files
from deathmatch.plan.dataset import PROBES
from deathmatch.plan.record import OUTCOMES
from deathmatch.plan.trial import CONFIGURATION
from deathmatch.quantities.quantity import RATE

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

# Counters of `samples` that grow: a point has their growth, until the server has drained.
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

# Columns that a file lacks if no trial has them.
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

# The columns that identify a row.
_ONCE = {
    "trials": ("server", "variant", "n"),
    "points": ("server", "variant", "n", "offered_rate_rps", "messages"),
}


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
    rate = {RATE: pl.Int64}
    own = {"trials": _TRIALS, "points": points, "times": rate | histogram.SCHEMA,
           "samples": SAMPLES, "seconds": rate | histogram.SECONDS,
           PROBES: probes.COLUMNS}  # fmt: skip
    return keys(experiment) | own[table]


def schema(experiment: str, table: str) -> pa.DataFrameSchema:
    """Return a table's schema: columns, types, and the valid values of our own columns.

    A trial or a point may occur only once. A load generator's columns are checked when its report
    is read (`load.generator.checked`).
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

    Values are checked when the table is written, and by the strict check.
    """
    path = _existing(dataset, experiment, table)
    return _fitting(pl.read_parquet(path), experiment, table, path)


def scan(dataset: str, experiment: str, table: str) -> pl.LazyFrame:
    """Return one table of a dataset, lazily. Raises UserError as `read` does."""
    path = _existing(dataset, experiment, table)
    # By default polars 1.40 filters while decoding; it fails at nulls in a column of differences.
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
"""The factor's level in a variant's name; the default level is not part of the name."""


def of_own_client(frame: Frame) -> Frame:
    """Return a table's rows of the experiment's own load generator.

    Trials of another one answer another question: what the client contributes.
    """
    return frame.filter(~pl.col("variant").str.contains(_LOAD_GENERATOR))


def of_any_client(frame: Frame) -> Frame:
    """Return a table without the factor of the load generator in its variants' names.

    If the experiment's own load generator and another one have a trial, the own one's rows stay.
    """
    foreign = pl.col("variant").str.contains(_LOAD_GENERATOR)
    without = pl.col("variant").str.replace(_LOAD_GENERATOR, "")
    named = without.str.strip_chars(",").str.replace(",,", ",")
    own, others = (
        frame.filter(~foreign),
        frame.filter(foreign).with_columns(
            variant=pl.when(named == "").then(pl.lit("default")).otherwise(named)
        ),
    )
    return pl.concat([own, others.join(own, on=TRIAL, how="anti", maintain_order="left")])


def of_main_client(frame: pl.DataFrame) -> Callable[[Frame], Frame]:
    """Return the filter for the rows of a dataset, given a table: `of_own_client`, `of_any_client`.

    The latter if another client measured most trials, so that no two clients are compared.
    """
    trials = frame.select(TRIAL).unique()
    return of_own_client if 2 * len(of_own_client(trials)) >= len(trials) else of_any_client


def check(frame: Frame, experiment: str, table: str, where: str) -> Frame:
    """Return the frame, with missing columns of SELDOM added as null, if it fits its schema.

    Raises UserError with the name of the column otherwise.
    """
    try:
        return schema(experiment, table).validate(_with_seldom(frame, columns(experiment, table)))
    except pa.errors.SchemaError as error:
        what = str(error).splitlines()[0]
        raise UserError(what, where, "delete it and run snakemake: it is made again") from None


def _with_seldom(frame: Frame, wanted: dict[str, type[pl.DataType]]) -> Frame:
    known = frame.collect_schema().names()
    absent = [name for name in SELDOM if name in wanted and name not in known]
    if not absent or set(wanted) - set(absent) != set(known):
        return frame
    return frame.with_columns(pl.lit(None, wanted[name]).alias(name) for name in absent).select(
        *wanted
    )


def write(frame: pl.DataFrame, experiment: str, table: str, folder: Path) -> None:
    """Check the frame and write it into the folder, atomically."""
    path = folder / f"{table}.parquet"
    partial = path.with_suffix(".partial")
    checked = check(frame, experiment, table, str(path))
    checked = checked.drop(
        name for name in SELDOM if name in checked.columns and checked[name].is_null().all()
    )
    # Times are sorted: differences take half the space, and polars' own writer cannot store them.
    integers = [name for name, kind in checked.schema.items() if kind.is_integer()]
    encoding = {
        "use_dictionary": [name for name in checked.columns if name not in integers],
        "column_encoding": dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
    }
    # pyarrow 23 cannot write a null list that still spans values, as polars' when() leaves one.
    lists = [name for name, kind in checked.schema.items() if isinstance(kind, pl.List)]
    rebuilt = (pl.Series(name, checked[name].to_list(), frame.schema[name]) for name in lists)
    checked.with_columns(*rebuilt).write_parquet(
        partial,
        compression="zstd",
        compression_level=19,
        use_pyarrow=True,
        pyarrow_options=encoding,
    )
    partial.rename(path)
