"""Raw logs to tables: a real trial's numbers, worked out by hand, and schemas that refuse.

`tests/data/yucan` is a trial as it was measured: a listen backlog of 1, 500 then 2,000 req/s.
"""

import datetime
import shutil
from pathlib import Path

import polars as pl
import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st

from deathmatch.data import table_files, tables, tidy
from deathmatch.errors import UserError
from deathmatch.load import histogram, httperf
from deathmatch.plan.dataset import TABLES

FILLED = [table for table in TABLES if table != "seconds"]
TRIAL = next((ROOT / "tests" / "data" / "yucan").glob("*/1/trial.json"))


@pytest.fixture(scope="module")
def frames() -> dict[str, pl.DataFrame]:
    made = tidy.tidy(TRIAL)
    return {
        table: pl.DataFrame(made[table], schema=tables.columns("backlog", table), orient="row")
        for table in TABLES
    }


def test_key_of_every_row(frames):
    key = {"server": "yucan", "variant": "backlog=1,schedulers=all,somaxconn=128", "backlog": 1,
           "schedulers": "all", "somaxconn": 128, "readiness": None, "n": 1}  # fmt: skip
    # Only wsload's reports have tables by the second.
    assert frames["seconds"].is_empty()
    for table in FILLED:
        frame = frames[table]
        assert frame.select(list(key)).unique().to_dicts() == [key]
        assert frame.columns[:2] == ["server", "variant"]


def test_trials(frames):
    (row,) = frames["trials"].to_dicts()
    wanted = {
        "title": "Yucan", "language": "Erlang", "version": "Yucan on OTP 25, erts 13.1.5, jit",
        "outcome": "measured", "reason": "", "wall_us": 10_352_321, "offering_us": 8_015_775,
        "testbed": "netns", "descriptors": 20_000, "server_cpus": [0, 1], "client_cpus": [1],
        "cpus": 2, "memory_bytes": 25_276_502_016, "toolchain": "debian",
        "stopped_on_sigterm": True,
        "started_at": datetime.datetime(2026, 11, 21, 7, 56, 6, tzinfo=datetime.UTC),
    }  # fmt: skip
    assert {key: row[key] for key in wanted} == wanted


@pytest.mark.parametrize(
    ("point", "share"),
    [
        ({"workers": 2, "workers_us": [60, 40]}, 0.4),
        ({"workers": 2, "workers_us": [60]}, 0.0),
        ({"workers": 2, "workers_us": [60, 30, 10]}, 0.3),
        ({"workers": 1, "workers_us": [60]}, None),
        ({"workers": 2, "workers_us": []}, None),
        ({}, None),
    ],
)
def test_the_least_busy_worker_has_its_share(point, share):
    assert tidy._least_busy(point) == share


def test_points(frames):
    """Growth from the first to the last sample of a rate, and the highest of them."""
    slow, fast = frames["points"].sort("offered_rate_rps").to_dicts()
    wanted = {
        "offered_rate_rps": 2000, "duration_us": 1_000_000, "fresh_start": False,
        "server_state": "ran", "client_state": "exit 0", "report": "whole",
        "connections": 2000, "replies": 1995, "errors_client_timeout": 5,
        # 3,000 connects at the sample 1.04 s in, 1,000 before: all 2,000 were offered in time.
        # … but httperf had only 74 % of its CPU.
        "actual_rate_rps": 2000.0, "client_limited": True,
        "server_listen_overflows": 295, "server_listen_drops": 295, "server_syncookies_sent": 80,
        "server_passive_opens": 3002 - 1007, "client_active_opens": 3000 - 1000,
        "client_syn_retransmissions": 119, "server_resets_sent": 0,
        "server_cpu_ns": 263_985_840, "context_switches": 160_578,
        "server_threads_max": 12, "client_descriptors_max": 116,
    }  # fmt: skip
    assert {key: fast[key] for key in wanted} == wanted
    assert slow["fresh_start"] and slow["actual_rate_rps"] == 500
    assert slow["server_listen_overflows"] == 0 and slow["server_passive_opens"] == 500


def test_times_and_samples(frames):
    fast = frames["times"].filter(pl.col("offered_rate_rps") == 2000)
    assert fast["count"].sum() == 1995 and fast["time_us"].max() == 4_352_425
    # 1,000 of the 2,000 took at most the median of the replies' 0.3 ms, to a bin of 10 us.
    assert histogram.quantile_us(fast, 0.5, total=2000) in range(250, 350)
    assert histogram.quantile_us(fast, 0.998, total=2000) is None
    samples = frames["samples"]
    assert len(samples) == 25 and samples["time_us"].is_sorted()
    assert samples["offered_rate_rps"].null_count() == 3


def test_schema_refuses(frames):
    for table in FILLED:
        tables.check(frames[table], "backlog", table, "here")
    good = frames["trials"]
    wrong = [
        good.drop("server"),
        good.with_columns(extra=1),
        good.with_columns(n=pl.lit("one")),
        good.with_columns(n=pl.lit(0, pl.Int64)),
        good.with_columns(server=pl.lit(None, pl.String)),
        good.select(reversed(good.columns)),
        good.with_columns(outcome=pl.lit("well")),
        # Two measurements of one variant and round.
        pl.concat([good, good]),
    ]
    for frame in wrong:
        with pytest.raises(UserError, match=r"^here: (?s:.)+\n  delete it and run snakemake"):
            tables.check(frame, "backlog", "trials", "here")


def test_tables_are_written_whole_and_read_back(frames, tmp_path, monkeypatch):
    folder = tmp_path / "data" / "mine" / "backlog"
    folder.mkdir(parents=True)
    for table, frame in frames.items():
        tables.write(frame, "backlog", table, folder)
    assert {path.name for path in folder.iterdir()} == {f"{table}.parquet" for table in TABLES}
    monkeypatch.setattr(table_files, "ROOT", tmp_path)
    for table, frame in frames.items():
        # Columns that no trial has recorded are not in the file.
        kept = pl.read_parquet(folder / f"{table}.parquet")
        assert kept.equals(frame.drop(tables.SELDOM, strict=False))
        assert tables.read("mine", "backlog", table).equals(frame)
    with pytest.raises(UserError, match="no such table\n  run: snakemake --config dataset=your"):
        tables.read("your", "backlog", "points")


@pytest.fixture
def copied(tmp_path) -> Path:
    to = tmp_path / TRIAL.parent.parent.name / "1"
    shutil.copytree(TRIAL.parent, to)
    return to


def test_cut_and_missing_logs_are_rows_without_numbers(copied):
    report = copied / "httperf-2000.txt"
    report.write_text(report.read_text().partition("Total:")[0])
    (copied / "samples.csv").unlink()
    made = tidy.tidy(copied / "trial.json")
    slow, fast = made["points"]
    assert slow["report"] == "whole" and slow["replies"] == 500
    assert fast["report"] == "truncated" and fast["replies"] is None
    assert fast["actual_rate_rps"] is None and fast["server_listen_overflows"] is None
    assert fast["client_limited"] is True
    # Its histogram's last bin would be cut too.
    assert {row["offered_rate_rps"] for row in made["times"]} == {500} and made["samples"] == []
    pl.DataFrame(made["points"], schema=tables.columns("backlog", "points"), orient="row")


def samples_of(opens: list[int], every_s: float) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "time_us": [round(i * every_s * 1e6) for i in range(len(opens))],
            "client_active_opens": opens,
        }
    )


SPEC = {"duration_s": 1, "load": {"requests_per_connection": 10}}


def test_client_that_falls_behind_is_marked():
    # 95 connections of ten calls in 1.04 s, where 100 were offered.
    during = samples_of([7, 7 + 95, 7 + 100], 1.04)
    actual = httperf.GENERATOR.actual_rate_rps({}, during, SPEC)
    assert actual == 950
    clean = dict.fromkeys(
        ["errors_descriptors_unavailable", "errors_address_unavailable",
         "errors_file_table_full"], 0,
    ) | {"client_cpu_total_percent": 99.0}  # fmt: skip
    assert httperf.GENERATOR.limited(clean, 1000, actual)
    assert not httperf.GENERATOR.limited(clean, 1000, 980)
    assert httperf.GENERATOR.limited(clean | {"errors_address_unavailable": 1}, 1000, 1000)
    assert httperf.GENERATOR.actual_rate_rps({}, during[:1], SPEC) is None
    assert httperf.GENERATOR.limited(clean, 1000, None)
    assert httperf.GENERATOR.limited(clean | {"client_cpu_total_percent": 60.0}, 1000, 1000)
    # The client had 40 ms for its start and took 10: its last sample is at 0.97 of 1.04 s.
    assert httperf.GENERATOR.actual_rate_rps({}, samples_of([7, 67], 0.97), SPEC) == 600


@given(st.integers(1, 10**5), st.floats(0.1, 0.3))
def test_rate_is_that_at_the_sample_nearest_to_the_end(connections, every_s):
    every_s = 1.04 / round(1.04 / every_s)
    steps = round(1.04 / every_s)
    opens = [round(connections * min(i / steps, 1)) for i in range(steps + 5)]
    assert (
        httperf.GENERATOR.actual_rate_rps({}, samples_of(opens, every_s), SPEC) == 10 * connections
    )
