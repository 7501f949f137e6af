"""Load generators: each has its folder and its module.

tests/test_several_clients.py merges reports of httperf and of roundtrip.
"""

import re
import subprocess
import sys
from pathlib import Path

import few
import polars as pl
import pytest
from conftest import ROOT
from fuzz.samples import ROUNDTRIP
from hypothesis import given, settings
from hypothesis import strategies as st

from deathmatch.builds import clients
from deathmatch.errors import Truncated, UserError
from deathmatch.load import histogram, registry, wsload, wsload_records
from deathmatch.plan import files

# (time, how many): in steps of httperf's bins, so that nothing is rounded.
BINS = st.dictionaries(st.integers(0, 10**6).map(lambda n: n * 10 + 5), st.integers(1, 50))
HALVES = st.lists(BINS, min_size=2, max_size=4)


def whole(parts: list[dict[int, int]]) -> dict[int, int]:
    times = {time for part in parts for time in part}
    return {time: sum(part.get(time, 0) for part in parts) for time in sorted(times)}


def rows(frame: pl.DataFrame, quantity: str) -> dict[int, int]:
    found = frame.filter(pl.col("quantity") == quantity).select("time_us", "count")
    return dict(found.sort("time_us").iter_rows())


def wsload_report(bins: dict[int, int]) -> wsload.Report:
    """Return a report of so many replies by their time, and of two messages that were lost."""
    replies = sum(bins.values())
    summary = few.summary_of_wsload(
        messages={"intended": replies + 2, "sent": replies + 2, "echoed": replies, "lost": 2},
        connections={"intended": 4, "opened": replies, "upgraded": 4}, outcomes={"completed": 4},
        limited_by=["its CPU"],
    )  # fmt: skip
    ordered = sorted(bins.items())
    times = [("latency", us % 3, us, n) for us, n in ordered] + [("latency", 0, None, 2)]
    times += [("handshake_time", 0, us, n) for us, n in ordered]
    times += [("service_time", 0, 1, replies + 2)]
    frame = pl.DataFrame(times, wsload_records.TIMES_SCHEMA, orient="row")
    frame = frame.sort("quantity", "second", "time_us", nulls_last=True)
    return wsload.Report((summary,), frame)


@settings(max_examples=15, deadline=None)
@given(HALVES)
def test_wsload_reports_merge(parts):
    client = registry.generator("wsload")
    together = client.merge([wsload_report(part) for part in parts])
    fields, one = client.parse(together, 3), client.parse(wsload_report(whole(parts)), 3)
    n = len(parts)
    counted = together.times.group_by("quantity", "time_us").agg(pl.col("count").sum())
    for quantity in ("latency", "handshake_time"):
        assert rows(counted.drop_nulls("time_us"), quantity) == whole(parts)
    assert counted.filter(pl.col("time_us").is_null())["count"].to_list() == [2 * n]
    same = ["replies", "client_lag_max_us", "handshake_time_p50_us", "handshake_time_p999_us",
            "client_limited_by", "client_loop_busy_share", "message_latency_max_us"]  # fmt: skip
    assert {name: fields[name] for name in same} == {name: one[name] for name in same}
    assert fields["connections"] == 4 * n and fields["client_cpu_us"] == 5 * n
    seconds = client.seconds(together).filter(pl.col("quantity") == "latency")
    assert seconds["count"].sum() == sum(whole(parts).values()) + 2 * n
    assert client.parse(client.merge([wsload_report(whole(parts))]), 3) == one


def test_rates_of_clients_that_start_together_add_up():
    trial = next((ROOT / "tests" / "data" / "yucan").glob("*/1"))
    for name, text, rate in (
        ("httperf", (trial / "httperf-2000.txt").read_text(), "reply_rate_avg_rps"),
        ("roundtrip", ROUNDTRIP[0].decode(), "reply_rate_offered_window_rps"),
    ):
        generator = registry.generator(name)
        one, two = (generator.parse((text,) * count, 1) for count in (1, 2))
        assert two["replies"] == 2 * one["replies"]
        # httperf's own is a mean of samples.
        assert two[rate] == pytest.approx(2 * one[rate], rel=0.06)
        assert two["test_duration_us"] == one["test_duration_us"]


@pytest.mark.parametrize("name", registry.names())
def test_each_has_all_that_the_protocol_asks(name):
    client, generator = registry.client(name), registry.generator(name)
    load = next(
        each.load_as_written
        | {factor.load: factor.default for factor in each.factors.values() if factor.load}
        for each in map(files.experiment, files.names("experiment"))
        if each.client == name
    )  # fmt: skip
    assert load.keys() <= client.load.keys()
    words = generator.command("10.0.0.1", 80, load, 100, 1)
    assert words[0] == client.program and all(isinstance(word, str) for word in words)
    assert generator.time_limit_s(load, 1) > 1
    assert {*generator.wrong_replies, *generator.wrong_besides} <= set(generator.columns)
    empty = generator.read(Path("nothing-is-here.txt"))
    with pytest.raises(Truncated):
        generator.parse(empty, 1)
    assert generator.histogram(empty).schema == histogram.SCHEMA
    assert generator.seconds(empty).schema == histogram.SECONDS
    assert generator.histogram(generator.merge([empty, empty])).is_empty()
    assert not generator.sampled(pl.DataFrame(), pl.DataFrame()) or generator.has_seconds


def test_versions_are_read():
    assert clients.version("httperf").startswith("httperf: httperf-0.9.0")
    assert clients.version("roundtrip") == "roundtrip 3"


def test_a_wrong_description_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "ROOT", tmp_path)
    registry.client.cache_clear()
    file = tmp_path / "clients" / "mine" / "client.toml"
    file.parent.mkdir(parents=True)
    file.write_text('title = "mine"\nprogram = "mine"\nversion = "mine -V"\nbuild_by = "x"\n')
    with pytest.raises(UserError, match="key build_by"):
        registry.client("mine")
    file.write_text("title =")
    with pytest.raises(UserError, match="not TOML"):
        registry.client("mine")
    with pytest.raises(UserError, match="known: mine"):
        registry.client("other")
    registry.client.cache_clear()


def test_the_registry_loads_no_data_frames():
    script = (
        "import sys; from deathmatch.load import registry\n"
        "print([registry.client(name).title for name in registry.names()], 'polars' in sys.modules)"
    )
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("] False\n")


def test_only_hosts_know_how_a_namespace_is_entered():
    package = ROOT / "deathmatch"
    for path in package.rglob("*.py"):
        # The agent is what a host does.
        if path.relative_to(package).parts[0] not in ("hosts", "agent"):
            found = re.search(r"ip.{1,4}netns|nsenter|taskset", path.read_text())
            # A testbed's file is reported as taskset writes it, and a log has its words.
            assert not found or path.name in ("testbed.py", "server_rules.py"), (path, found)


def test_the_benchmark_of_the_analysis_runs():
    sizes = ["--runs=1", "--connections=10", "--duration=5", "--rounds=1"]
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "analysis.py", *sizes], capture_output=True, text=True
    )
    assert done.stdout.startswith("50 messages, "), done.stderr
