"""Cut tests/data/miniature out of the committed datasets: `./shell python tests/cut_miniature.py`.

It was cut once, from the data of commit 58a2622d, and is kept: tests of code stand on it, whatever
is measured later. It holds every experiment of the study: three rounds of the trials of some
servers. Where several datasets have a trial, it is that of the first, with the points at rates that
only a later one has. The raw logs of a few trials of each load generator are in archives; so that
it stays small, the histograms of most others have two digits, and their points some six samples.
"""

import functools
import lzma
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deathmatch.data import tables  # noqa: E402
from deathmatch.data.archive import NAME  # noqa: E402

MINIATURE = ROOT / "tests" / "data" / "miniature"
TABLES = ("trials", "points", "times", "samples", "seconds", "probes")
KEY = ["server", "variant", "n"]
RATE = "offered_rate_rps"
OF_POINTS = ("points", "times", "samples")
ROUNDS = 3
# One server has fewer rounds than those that it is ranked with.
FEWER = {"single-thread": ("go", 2)}
# Of an experiment: the datasets that it is taken from, which of their trials, as "dataset/server/
# variant", and which of the first one's have raw logs, as "server/variant".
CUT = {
    "accept-queue": (["reference"], "", None),
    "backlog": (["reference", "backlog-of-one"], ".*/(null|tornado|tornado-1|yucan)/", None),
    "c10k": (
        ["reference", "connection-timeouts", "handshakes"],
        "(reference|connection-timeouts)/(erlang-cowboy|perl-ev-ws|tornado-ws|ws-null)/|"
        "reference/webbit/|reference/(node-ws|twisted-ws)/.*=unthrottled,opening=128|handshakes/[a-z-]+/.*schedulers=all,",
        "ws-null/.*environment=ec2-like,.*",
    ),
    "dynamic": (
        ["reference", "dynamic-rates", "lookups"],
        "lookups/|.*/(cowboy-otp29|mochiweb-otp29|node|node-0.8|null|tornado|tornado-1)/|"
        "reference/(cowboy|mochiweb)/.*=defaults,", None,
    ),
    "history": (["history", "history-capacity"], ".*/(node|tornado)", None),
    "overhead": (["reference"], "", "otp-echo/layer=echo,schedulers=one,.*"),
    "readiness": (
        ["reference", "limits"], ".*/(c-readiness|nginx|perl-ev|tornado|tornado-1)/",
        "c-readiness/readiness=(epoll|poll),idle_connections=500,.*",
    ),
    "scale-out": (["reference"], ".*/(null|tornado|tornado-nginx|webpy-modwsgi|yaws|yucan)/", None),
    "select-crash": (["reference"], "", None),
    "single-thread": (
        ["reference", "one-core", "yucan-yaws"],
        ".*/(cherrypy|go|null|tornado|tornado-0.2|tornado-1|yaws|yucan(-nojit|-otp23|-passive)?)/",
        None,
    ),
    "static": (
        ["reference"], ".*/(inets|(mochiweb|yaws)(-poll)?|nginx|null)/", "null/.*",
    ),
    "storage": (["reference"], "", ".*"),
}  # fmt: skip
# Of each point; where the CPU time of a fifth of it is told, more.
SAMPLES, MORE = 6, {"c10k": 16}
# Small anyway; and a law holds the mean of such times against the number of connections.
WHOLE = ("overhead", "readiness", "storage")


def coarse(times: pl.DataFrame) -> pl.DataFrame:
    """Return histograms whose times have two digits, with all that they count."""
    digits = 10 ** (pl.col("time_us").clip(1).log10().floor() - 1).clip(0)
    rounded = ((pl.col("time_us") / digits).round() * digits).cast(pl.Int64)
    by = [name for name in times.columns if name != "count"]
    counted = times.with_columns(time_us=rounded).group_by(by, maintain_order=True)
    return counted.agg(pl.col("count").sum().cast(times.schema["count"])).select(times.columns)


def thin(samples: pl.DataFrame, keep: int) -> pl.DataFrame:
    """Return about so many samples of each point, the first and the last among them."""
    point = [*KEY, RATE]
    place, count = pl.int_range(pl.len()).over(point), pl.len().over(point)
    return samples.filter(
        (place % (count / keep).ceil().cast(pl.Int64) == 0) | (place == count - 1)
    )


def cut(experiment: str) -> None:
    """Write the tables of an experiment, and its archive."""
    sources, which, logged = CUT[experiment]
    fewer, rounds = FEWER.get(experiment, ("", ROUNDS))
    limit = pl.when(pl.col("server") == fewer).then(rounds).otherwise(ROUNDS)
    sampled = functools.partial(thin, keep=MORE.get(experiment, SAMPLES))
    parts: dict[str, pl.DataFrame] = {}
    for source in sources:
        folder = ROOT / "data" / source / experiment
        wanted = named(pl.lit(source), "server", "variant").str.contains(f"^({which})")
        every = pl.read_parquet(folder / "trials.parquet", columns=KEY)
        keys = every.filter(wanted, pl.col("n") <= limit)
        before = dict(parts)
        for table in TABLES:
            if not (file := folder / f"{table}.parquet").is_file():
                continue
            frame = pl.read_parquet(file).join(keys, on=KEY, how="semi", maintain_order="left")
            if table in before:
                # A point that an earlier dataset has is not taken again, nor is a trial.
                rate = [RATE] if table in OF_POINTS else []
                there = before["points" if rate else table].select(*KEY, *rate).unique()
                frame = frame.join(there, on=there.columns, how="anti", maintain_order="left")
            shorter = {"times": coarse, "samples": sampled}.get(table)
            if shorter and experiment not in WHOLE:
                logs = has_logs(logged) if source == sources[0] else pl.lit(False)
                frame = pl.concat([frame.filter(logs), shorter(frame.filter(~logs))])
            held = [before[table]] if table in before else []
            parts[table] = pl.concat([*held, frame], how="diagonal_relaxed")
    to = MINIATURE / experiment
    to.mkdir(parents=True, exist_ok=True)
    for table, frame in parts.items():
        tables.write(frame.sort(KEY, maintain_order=True), experiment, table, to)
    if logged:
        pack(ROOT / "data" / sources[0] / experiment / NAME, parts["trials"], logged, to / NAME)


def has_logs(logged: str | None) -> pl.Expr:
    """Return whether a row is of a trial whose raw logs are kept."""
    return named("server", "variant").str.contains(f"^({logged})$") if logged else pl.lit(False)


def named(*parts: pl.Expr | str) -> pl.Expr:
    return pl.concat_str(*parts, separator="/")


def pack(whole: Path, trials: pl.DataFrame, logged: str, to: Path) -> None:
    """Write the raw logs of some trials out of an archive into another."""
    wanted = {"/".join(map(str, row)) for row in trials.filter(has_logs(logged)).select(KEY).rows()}
    with (
        tarfile.open(whole) as there,
        tarfile.open(to, "w:xz", preset=9 | lzma.PRESET_EXTREME) as made,
    ):
        for member in there:
            if member.isfile() and str(Path(member.name).parent) in wanted:
                made.addfile(member, BytesIO(there.extractfile(member).read()))


if __name__ == "__main__":
    for name in sys.argv[1:] or CUT:
        cut(name)
