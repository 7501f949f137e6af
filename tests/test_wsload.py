"""wsload's records to histograms, its command line, and a real trial with it."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import few
import numpy as np
import polars as pl
import pytest
from conftest import HUNG_S, ROOT, Tree, copy_tree, first_line
from hypothesis import given, settings
from hypothesis import strategies as st
from side_by_side import turn

from deathmatch.builds import clients, server_build, server_commands
from deathmatch.data import tidy
from deathmatch.errors import Truncated
from deathmatch.load import histogram, registry, wsload, wsload_records
from deathmatch.load.generator import Part
from deathmatch.load.wsload import GENERATOR
from deathmatch.measure import churn, conformance, context
from deathmatch.plan import files
from deathmatch.plan.trial import Trial, Variant

NULL = registry.client("wsload").built_by

LOAD = {"message_bytes": 33, "interval_s": 0.1, "opening": 16, "timeout_s": 1, "drain_s": 0.5}
RATE_RPS, DURATION_S = 500, 2


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder that holds wsload and ws-null, built if they are not."""
    # Two workers may ask at once.
    with turn(alone=True, folder=server_commands.build_dir(NULL).with_name("turns")):
        built = server_build.built(files.server(NULL))
    assert built["ok"], built["log"]
    return server_commands.build_dir(NULL) / "bin"


TARGET = ROOT / "build" / "cargo"
OF_TIME = "timing::"
"""What the names of the client's tests that measure times begin with: beside them runs no other."""


def cargo(*words: str) -> None:
    """Run cargo on the client as it is tested, apart from what the measurements use."""
    # It is compiled once: a third more, for a quicker second time.
    environment = server_commands.environment(NULL) | {"CARGO_INCREMENTAL": "0"}
    folder = Tree(ROOT / "clients" / "wsload", environment=environment)
    command, *more = words
    folder.run("cargo", command, "--locked", "--target-dir", TARGET, *more).succeeded()


@pytest.fixture(scope="session")
def compiled() -> None:
    """All tests, and the plain client that they compare with, compiled.

    All but what `cargo test` would make of the programs' own sources, which hold no test. One
    worker compiles at a time: two have damaged each other's dependency files.
    """
    with turn(alone=True, folder=TARGET / "turns"):
        cargo("build", "--profile", "test", "--examples")
        # Each by itself: on a busy machine both at once are silent for longer than what hangs.
        for target in (["--lib"], ["--test", "all"]):
            cargo("test", "--no-run", *target)


@pytest.mark.timing
def test_the_client_s_own_tests_pass(compiled):
    """Those on real servers too, the freeze test among them; not those that measure times."""
    cargo("test", "--lib", "--test", "all", "--", "--skip", OF_TIME)


def test_no_test_stands_where_it_would_not_run():
    sources = ROOT / "clients" / "wsload" / "src"
    programs = [sources / "main.rs", *(sources / "bin").iterdir()]
    assert [path.name for path in (sources.parent / "tests").iterdir()] == ["all"]
    assert [path for path in programs if "#[test]" in path.read_text()] == []
    texts = re.compile(r"^ *//[/!] *```", re.MULTILINE)
    assert [path for path in sources.rglob("*.rs") if texts.search(path.read_text())] == []


def test_client_and_null_server_are_built(programs):
    """Beside other tests: those that measure with them are alone."""
    assert sorted(path.name for path in programs.iterdir()) == ["ws-null", "wsload"]


class Null:
    """The null server on a free port."""

    def __init__(self, programs: Path):
        words = [programs / "ws-null", "127.0.0.1:0"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.port = int(first_line(self.process).rpartition(":")[2])

    def __enter__(self) -> "Null":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def run(folder: Path, port: int, after=lambda: None, load=LOAD) -> Path:
    """Offer the load; return the log, with the records in its folder."""
    log = folder / f"wsload-{RATE_RPS}.txt"
    words = clients.located(GENERATOR.command("127.0.0.1", port, load, RATE_RPS, DURATION_S))
    with log.open("w") as out:
        process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT, cwd=folder)
        after()
        process.wait(GENERATOR.time_limit_s(load, DURATION_S))
    return log


def begun(log: Path) -> tuple[pl.DataFrame, dict]:
    """Return a run's connections with `late_us`, how long after its time each began; its fields."""
    connections = pl.read_parquet(log.with_suffix("") / "connections.parquet")
    GENERATOR.compact(log, keep_events=True)
    late = connections.with_columns(late_us=pl.col("started_us") - pl.col("intended_us"))
    return late.sort("connection"), GENERATOR.parse(GENERATOR.read(log), DURATION_S)


@pytest.fixture(scope="module")
def frozen(programs, tmp_path_factory) -> tuple[Path, pl.DataFrame, pl.DataFrame]:
    """A run whose server stops before its end, so that messages are lost: log and raw tables."""
    folder = tmp_path_factory.mktemp("wsload")
    with Null(programs) as null:

        def freeze() -> None:
            time.sleep(DURATION_S - 0.4)
            os.kill(null.process.pid, signal.SIGSTOP)

        log = run(folder, null.port, freeze)
    records = log.with_suffix("")
    messages = pl.read_parquet(records / "messages" / "*.parquet")
    connections = pl.read_parquet(records / "connections.parquet")
    shutil.copytree(records, folder / "kept")
    GENERATOR.compact(log, keep_events=False)
    assert sorted(path.name for path in folder.iterdir()) == [
        "kept", f"wsload-{RATE_RPS}.connections.parquet", f"wsload-{RATE_RPS}.parquet",
        f"wsload-{RATE_RPS}.txt",
    ]  # fmt: skip
    return log, messages, connections


def spread_out(times: pl.DataFrame, quantity: str) -> list[tuple]:
    """Return a histogram as the (second, time) of each that it counts."""
    rows = times.filter(pl.col("quantity") == quantity).select("second", "time_us", "count").rows()
    assert len({row[:2] for row in rows}) == len(rows)
    return sorted(
        ((second, us) for second, us, count in rows for _ in range(count)), key=str
    )  # fmt: skip


def taken(events: pl.DataFrame, begin: str, end: str) -> list[tuple]:
    """Return the same of raw events, one by one, to the digits that histograms keep."""
    return sorted(
        (
            (intended_us // 1_000_000, kept(end_us, begin_us))
            for intended_us, begin_us, end_us in events.select(
                "intended_us", begin_us=begin, end_us=end
            ).rows()
        ),
        key=str,
    )  # fmt: skip


def kept(end_us: int | None, begin_us: int) -> int | None:
    return None if end_us is None else int(float(f"{end_us - begin_us:.3e}"))


def took_us(events: pl.DataFrame, end: str) -> np.ndarray:
    """Return how long what ended took from its intended time, in order, to those digits."""
    ended = events.drop_nulls(end).select(end, "intended_us").rows()
    return np.sort([kept(*times) for times in ended])


@pytest.mark.timing
@pytest.mark.alone
def test_histograms_keep_four_digits_of_every_time(frozen):
    log, messages, connections = frozen
    times = GENERATOR.read(log).times
    assert dict(times.schema) == wsload_records.TIMES_SCHEMA
    assert spread_out(times, "latency") == taken(messages, "intended_us", "received_us")
    sent = messages.drop_nulls("sent_us")
    assert spread_out(times, "service_time") == taken(sent, "sent_us", "received_us")
    for quantity, end in (("handshake_time", "upgraded_us"), ("connection_time", "connected_us")):
        assert spread_out(times, quantity) == taken(connections, "intended_us", end)
    assert times["time_us"].null_count() > 0


def test_times_keep_four_digits_and_what_never_ended_counts(tmp_path):
    (tmp_path / "messages").mkdir()
    rows = [(end_us, 0, 7) for end_us in (9_999, 12_340, 12_344, 1_234_567, None)]
    messages = pl.DataFrame(rows, schema=["received_us", "intended_us", "sent_us"], orient="row")
    messages.write_parquet(tmp_path / "messages" / "0.parquet")
    found = wsload_records.histograms(tmp_path).filter(pl.col("quantity") == "latency")
    assert found.select("time_us", "count").rows() == [
        (9_999, 1), (12_340, 2), (1_235_000, 1), (None, 1)
    ]  # fmt: skip
    assert wsload_records.of_steps(wsload_records.steps(found)).equals(found)


@pytest.mark.timing
@pytest.mark.alone
def test_statistics_are_those_of_the_raw_events(frozen):
    log, messages, connections = frozen
    fields = GENERATOR.parse(GENERATOR.read(log), DURATION_S)
    pl.DataFrame([fields], schema=GENERATOR.columns, strict=True)
    latency = took_us(messages, "received_us")
    due = len(messages)
    assert (fields["messages_due"], fields["replies"]) == (due, len(latency))
    assert fields["messages_lost"] + fields["messages_unsent"] == due - len(latency) > 20
    assert fields["message_latency_mean_us"] == pytest.approx(latency.mean())
    assert fields["message_latency_stddev_us"] == pytest.approx(latency.std())
    assert fields["message_latency_max_us"] == latency.max()
    assert fields["message_latency_p50_us"] == latency[int(np.ceil(0.5 * due)) - 1]
    # More than a hundredth is lost, so that it lies among those.
    assert fields["message_latency_p99_us"] is fields["message_latency_p999_us"] is None
    upgrades = took_us(connections, "upgraded_us")
    assert fields["handshake_time_p95_us"] == upgrades[int(np.ceil(0.95 * len(upgrades))) - 1]
    assert fields["connections"] == fields["connections_upgraded"] == 50
    assert fields["connection_timeouts"] == 0


@pytest.mark.timing
@pytest.mark.alone
def test_seconds_are_those_of_the_raw_events(frozen):
    log, messages, _ = frozen
    found = GENERATOR.seconds(GENERATOR.read(log)).filter(pl.col("quantity") == "latency")
    assert found["count"].sum() == len(messages)
    for row in found.to_dicts():
        due = messages.filter(pl.col("intended_us") // 1_000_000 == row["since_start_s"])
        latency = took_us(due, "received_us")
        assert (row["count"], row["lost"]) == (len(due), len(due) - len(latency))
        rank = int(np.ceil(0.5 * len(due))) - 1
        assert row["p50_us"] == (latency[rank] if rank < len(latency) else None)
        assert row["max_us"] == (latency[-1] if len(latency) else None)


@pytest.mark.timing
@pytest.mark.alone
def test_the_whole_run_s_histogram_is_near(frozen):
    log, messages, _ = frozen
    bins = GENERATOR.histogram(GENERATOR.read(log)).filter(pl.col("quantity") == "latency")
    latency = took_us(messages, "received_us")
    assert bins["count"].sum() == len(latency)
    # To three digits: half of the last is 0.5 % at most. Rounding keeps the order, so that a
    # quantile is that of the same message, however far its neighbours are.
    for q in (0.1, 0.5, 0.9):
        exact = histogram.quantile_us(pl.DataFrame({"time_us": latency, "count": 1}), q)
        assert histogram.quantile_us(bins, q) == pytest.approx(exact, rel=0.005)


@pytest.mark.timing
@pytest.mark.alone
def test_a_starved_connection_is_found(frozen):
    """The server froze and answered the rest: no connection got nothing, until one is planted."""
    log, messages, connections = frozen
    found = GENERATOR.read(log).shares
    assert (
        found["count"].sum()
        == (connections["outcome"] == "completed").sum()
        + (connections["outcome"] == "unfinished").sum()
    )
    assert (found["due"] * found["count"]).sum() <= len(messages)
    assert wsload_records.starved(found) == 0 and wsload_records.starved(None) is None
    planted = pl.DataFrame({"due": [3, 2], "echoed": [0, 0], "count": [2, 9]})
    assert wsload_records.starved(planted) == 2


def test_progress_is_of_the_seconds_after_all_connections_were_opened():
    """Three seconds of opening, ten with all, and one in which the run ended."""
    rows = [
        ("latency", second, 100 + second, count)
        for second, count in enumerate([20, 60, 98, *[100] * 10, 40])
    ]
    times = pl.DataFrame(rows, schema=wsload_records.TIMES_SCHEMA, orient="row")
    found = GENERATOR.progress(wsload.Report(("",), times), 13.5)
    assert found == [100 + second for second in range(4, 13)]
    assert GENERATOR.progress(wsload.Report(("",), times[:0]), 13.5) == []


def test_shares_are_those_of_the_raw_events(tmp_path):
    """Connection 1 gets nothing, 2 was closed by the server, 3 had nothing due."""
    (tmp_path / "messages").mkdir()
    rows = [(0, 10), (0, None), (1, None), (1, None), (1, None), (2, None)]
    messages = pl.DataFrame(rows, schema=["connection", "received_us"], orient="row")
    messages.write_parquet(tmp_path / "messages" / "0.parquet")
    outcomes = ["completed", "unfinished", "closed_by_server", "completed"]
    pl.DataFrame(
        {"connection": range(4), "upgraded_us": [1, 2, 3, 4], "outcome": outcomes}
    ).write_parquet(tmp_path / "connections.parquet")
    found = wsload_records.shares(tmp_path)
    assert found.rows() == [(0, 0, 1), (2, 1, 1), (3, 0, 1)]
    assert wsload_records.starved(found) == 1


@pytest.mark.timing
@pytest.mark.alone
def test_three_clients_merge_to_what_their_pooled_records_give(programs, tmp_path):
    parts = [Part(index, 3) for index in range(3)]
    logs = [tmp_path / f"{part.index}" / f"wsload-{RATE_RPS}.txt" for part in parts]
    with Null(programs) as null:
        running = []
        for part, log in zip(parts, logs):
            log.parent.mkdir()
            words = GENERATOR.command(
                "127.0.0.1", null.port, LOAD, RATE_RPS, DURATION_S, part, ["127.0.0.2", "127.0.0.3"]
            )
            with log.open("w") as out:
                running.append(subprocess.Popen(clients.located(words), stdout=out, cwd=log.parent))
        limit_s = GENERATOR.time_limit_s(LOAD, DURATION_S)
        assert [process.wait(limit_s) for process in running] == [0, 0, 0]
    pooled = tmp_path / "pooled"
    (pooled / "messages").mkdir(parents=True)
    for number, log in enumerate(logs):
        for file in log.with_suffix("").glob("messages/*.parquet"):
            shutil.copy(file, pooled / "messages" / f"{number}-{file.name}")
    each = [pl.read_parquet(log.with_suffix("") / "connections.parquet") for log in logs]
    pl.concat(each).write_parquet(pooled / "connections.parquet")
    one = wsload_records.histograms(pooled)
    for log in logs:
        GENERATOR.compact(log, keep_events=False)
    report = GENERATOR.merge([GENERATOR.read(log) for log in logs])
    in_order = one.sort("quantity", "second", "time_us", nulls_last=True)
    assert report.times.equals(in_order)
    fields = GENERATOR.parse(report, DURATION_S)
    messages = pl.read_parquet(pooled / "messages" / "*.parquet")
    latency = took_us(messages, "received_us")
    assert fields["messages_due"] == len(messages) and fields["replies"] == len(latency)
    assert fields["message_latency_p50_us"] == latency[int(np.ceil(0.5 * len(messages))) - 1]
    assert fields["message_latency_mean_us"] == pytest.approx(latency.mean())
    # As one client would have them: every connection once, by its number, and no two at one phase.
    assert [len(frame) for frame in each] == [17, 17, 16]
    assert pl.concat(each)["connection"].sort().to_list() == list(range(50))
    assert fields["connections"] == fields["connections_upgraded"] == 50
    assert set(pl.concat(each)["source"]) == {"127.0.0.2", "127.0.0.3"}
    phases = messages.select("connection", us=pl.col("intended_us") % 100_000).unique()
    assert len(phases) == 50 and phases["us"].is_unique().all()


TIMES = st.lists(st.one_of(st.none(), st.integers(0, 40_000_000)), min_size=1, max_size=60)


@settings(max_examples=60, deadline=None)
@given(TIMES)
def test_statistics_of_any_times(times):
    frame = pl.DataFrame({"time_us": times, "count": [1] * len(times)},
                         schema={"time_us": pl.Int64, "count": pl.Int32})  # fmt: skip
    found = histogram.statistics(frame)
    known = sorted(one for one in times if one is not None)
    if not known:
        assert set(found.values()) == {None}
        return
    for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        rank = next(k for k in range(1, len(times) + 1) if k >= q * len(times))
        assert found[name] == (known[rank - 1] if rank <= len(known) else None)
    assert found["max"] == known[-1]
    assert found["mean"] == pytest.approx(np.mean(known))
    assert found["stddev"] == pytest.approx(np.std(known), abs=1e-3)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 10**8)), min_size=1, max_size=40))
def test_rounding_keeps_three_digits_and_all_counts(rows):
    frame = pl.DataFrame(
        [("latency", second, us, 1) for second, us in rows],
        wsload_records.TIMES_SCHEMA,
        orient="row",
    )
    bins = GENERATOR.histogram(wsload.Report(("",), frame))
    assert bins["count"].sum() == len(rows)
    assert all(len(str(us).rstrip("0")) <= 3 for us in bins["time_us"])


@pytest.mark.timing
@pytest.mark.alone
def test_a_summary_cut_anywhere_is_truncated(frozen):
    log, *_ = frozen
    report = GENERATOR.read(log)
    whole = report.texts[0].rstrip()
    for end in range(0, len(whole), 7):
        with pytest.raises(Truncated):
            GENERATOR.parse(wsload.Report((whole[:end],), report.times), DURATION_S)


ANSWERS_WHEN_ALL_HAVE_ASKED = """
import base64, hashlib, re, resource, socket, sys
count = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, [resource.getrlimit(resource.RLIMIT_NOFILE)[1]] * 2)
listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
print(listener.getsockname()[1], flush=True)
peers = [listener.accept()[0] for _ in range(count)]
for peer in peers:
    key = re.search(rb"Sec-WebSocket-Key: (.*?)\\r", peer.recv(4096), re.IGNORECASE)[1]
    both = key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(both).digest())
    peer.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\n"
                 b"Connection: Upgrade\\r\\nSec-WebSocket-Accept: " + accept + b"\\r\\n\\r\\n")
"""


@pytest.mark.timing
@pytest.mark.alone
def test_ten_thousand_handshakes_are_under_way_at_once(programs, tmp_path):
    """Of a server that answers only once all have asked, in a network namespace of its own.

    It then ends, and so does the run, which has nothing left.
    """
    load = LOAD | {"opening": 10_000, "interval_s": 1, "timeout_s": HUNG_S, "drain_s": 0}
    (tmp_path / "server.py").write_text(ANSWERS_WHEN_ALL_HAVE_ASKED)
    words = clients.located(GENERATOR.command("127.0.0.1", 0, load, 10_000, HUNG_S))
    words = [word.replace(":0/", ":$(cat port)/") for word in map(str, words)]
    steps = (
        "ip link set lo up; sysctl -qw net.core.somaxconn=4096; "
        f"{sys.executable} server.py 10000 > port & "
        f"until [ -s port ]; do sleep 0.1; done; {' '.join(words)}; wait"
    )
    alone = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", steps]
    log = tmp_path / "wsload-10000.txt"
    with log.open("w") as out:
        subprocess.run(alone, stdout=out, cwd=tmp_path, timeout=HUNG_S, check=True)
    fields = GENERATOR.parse(GENERATOR.read(log), HUNG_S)
    assert fields["connections_opening_max"] == fields["connections_upgraded"] == 10_000
    assert fields["outcome_closed_by_server"] + fields["outcome_reset"] == 10_000
    assert fields["opening_rate_cps"] > 0


# 200 connections, which a thousand a second opens in 0.2 s.
AT_A_PACE = LOAD | {"opening": 0, "interval_s": 0.4}


@pytest.mark.timing
@pytest.mark.alone
def test_connections_are_begun_at_the_pace_of_the_posts_client(programs, tmp_path):
    with Null(programs) as null:
        log = run(tmp_path, null.port, load=AT_A_PACE)
    connections, fields = begun(log)
    assert connections["intended_us"].to_list() == list(range(0, 200_000, 1000))
    assert connections["late_us"].min() >= 0 and connections["late_us"].median() < 20_000
    assert connections["started_us"].max() >= 199_000
    assert fields["connections_upgraded"] == 200 and fields["connection_timeouts"] == 0
    took_us = connections["upgraded_us"].max() - connections["started_us"].min()
    assert fields["opening_rate_cps"] == pytest.approx(200e6 / took_us)


@pytest.mark.timing
@pytest.mark.alone
def test_connections_that_time_out_do_not_slow_the_beginning_of_others(programs, tmp_path):
    # A queue of two, of which the server takes none.
    with socket.create_server(("127.0.0.1", 0), backlog=1) as deaf:
        port = deaf.getsockname()[1]
        (tmp_path / "as it has room").mkdir()
        limited, _ = begun(run(tmp_path / "as it has room", port, load=AT_A_PACE | {"opening": 16}))
        connections, fields = begun(run(tmp_path, port, load=AT_A_PACE))
    assert len(connections) == 200 and connections["late_us"].median() < 20_000
    assert connections["started_us"].max() < 1e6 * LOAD["timeout_s"]
    assert fields["connections_upgraded"] == 0 and fields["connections_opening_max"] == 200
    assert fields["outcome_connect_timeout"] == fields["connection_timeouts"] >= 190
    # A client that waits for room begins no more than it has room for until the first time-out.
    soon = limited.filter(pl.col("started_us") < 1e6 * LOAD["timeout_s"])
    assert len(soon) == 16


def test_a_client_of_several_begins_its_share_of_the_pace():
    words = GENERATOR.command("10.0.0.1", 80, AT_A_PACE, RATE_RPS, DURATION_S, Part(1, 2))
    assert {"--open-rate=1000", "--connections=200", "--client=1/2"} <= set(words)
    assert not any(word.startswith("--opening") for word in words)


@pytest.mark.timing
@pytest.mark.alone
def test_nobody_listens(programs, tmp_path):
    with Null(programs) as null:
        port = null.port
    log = run(tmp_path, port)
    GENERATOR.compact(log, keep_events=True)
    assert (tmp_path / f"wsload-{RATE_RPS}" / "connections.parquet").exists()
    fields = GENERATOR.parse(GENERATOR.read(log), DURATION_S)
    assert fields["outcome_refused"] == fields["connections"] == 50
    assert fields["connections_upgraded"] == fields["messages_due"] == 0
    assert fields["connection_timeouts"] == 0 and fields["message_latency_p50_us"] is None


def test_connections_slower_than_the_posts_limit_count_as_its_timeouts():
    rows = [("connection_time", 0, us, n) for us, n in ((1_999_999, 3), (2_000_001, 4), (None, 5))]
    rows.append(("handshake_time", 0, None, 12))
    times = pl.DataFrame(rows, wsload_records.TIMES_SCHEMA, orient="row")
    counts = dict.fromkeys(("intended_count", "opened_count", "upgraded_count"), 12)
    outcomes = {"completed": 7, "connect_timeout": 2, "refused": 3}
    summary = {
        "connections": counts | {"outcomes_count": outcomes},
        "messages": dict.fromkeys(
            [f"{what}_count" for what in
             ("intended", "sent", "echoed", "lost", "unsent", "mismatched")], 0
        ),
        "client": {
            "lag": {"p99_us": None, "max_us": None}, "cpu_us": 1, "resident_peak_bytes": 1,
            "loop_busy_share": 0.1, "limited_by": ["this", "that"],
        },
    }  # fmt: skip
    fields = GENERATOR.parse(wsload.Report((json.dumps(summary),), times), 1)
    assert fields["connection_timeouts"] == 4 + 2
    assert fields["client_limited_by"] == "this; that" and GENERATOR.limited(fields, 1, 1.0)
    assert not GENERATOR.limited(fields | {"client_limited_by": ""}, 1, 1.0)


def test_memory_of_a_connection():
    def sample(time_us: int, rate: int | None, established: int, rss: int) -> dict:
        return {"time_us": time_us, "offered_rate_rps": rate, "server_established": established,
                "server_rss_bytes": rss}  # fmt: skip

    samples = pl.DataFrame([
        sample(0, None, 0, 1000), sample(1, None, 5, 9000), sample(2, 10, 0, 3000),
        sample(3, 10, 10, 5000), sample(4, 10, 10, 7000), sample(5, 10, 2, 99_000),
        sample(6, 20, 0, 4000), sample(7, 20, 20, 8000),
    ])  # fmt: skip
    during = samples.filter(pl.col("offered_rate_rps") == 10)
    found = GENERATOR.sampled(samples, during)
    assert found["server_rss_before_bytes"] == 1000 and found["server_rss_held_bytes"] == 6000
    assert found["server_rss_per_connection_bytes"] == 500
    # The second rate of a trial begins with what the first one left.
    found = GENERATOR.sampled(samples, samples.filter(pl.col("offered_rate_rps") == 20))
    assert found["server_rss_per_connection_bytes"] == (8000 - 4000) / 20
    assert set(GENERATOR.sampled(samples, samples.clear()).values()) == {None}


@pytest.fixture(scope="module")
def measured(programs, tmp_path_factory, network) -> tuple[Tree, dict[str, Path]]:
    """The trials of a small dataset of c10k, in a copy of the tree that takes our build along."""
    tree = Tree(copy_tree(tmp_path_factory.mktemp("c10k") / "tree"), network)
    for name in ("bin/wsload", "bin/ws-null", "build.json"):
        source = server_commands.build_dir(NULL) / name
        to = tree.write(f"build/servers/{NULL}/{name}", "")
        shutil.copy2(source, to)
    tree.write("config/datasets/tiny.toml", TINY)
    script = "from deathmatch.plan import matrix\nfor t in matrix.trials('tiny'): print(t.path)"
    paths = tree.run("python", "-c", script).succeeded().text.split()
    for path in paths:
        done = tree.deathmatch("trial", path)
        if done.status and "no CPU quota can be set" in done.text:
            continue
        done.succeeded()
    found = {path.rpartition("environment=")[2].split(",")[0]: tree.path / path for path in paths}
    return tree, found


TINY = """
title = "a test"
trials = 1
seed = 1

[experiments.c10k]
rates_rps = [200]
duration_s = 3
warm_up_rate_rps = 20
warm_up_s = 0.5
cool_down_s = 0.1

[[experiments.c10k.grids]]
servers = ["ws-null"]
environment = "all"
"""


@pytest.mark.parametrize("environment", ["unthrottled", "ec2-like"])
def test_a_trial(measured, environment):
    _, paths = measured
    folder = paths[environment]
    if not folder.exists() and environment == "ec2-like":
        pytest.skip("no cgroup with a CPU quota can be made here")
    trial = json.loads((folder / "trial.json").read_text())
    assert (trial["outcome"], trial["reason"]) == ("measured", "")
    names = [check["name"] for check in trial["conformance"]]
    assert {check.name for check in files.experiment("c10k").conformance} < {*names}
    assert "100 connections at once" in names
    assert trial["testbed"] == {"unthrottled": "netns"}.get(environment, environment)
    assert ("throttle" in trial) == (environment == "ec2-like")
    if environment == "ec2-like":
        assert trial["throttle"]["cpu_quota_us"] == 40_000 * len(trial["cpus"]["server"])
        assert trial["throttle"]["jitter"] and trial["throttle"]["periods"] > 0
    (point,) = trial["points"]
    assert (point["client_state"], point["server_state"]) == ("exit 0", "ran")
    assert trial["tools"]["harness"]["wsload"].startswith("built from clients/wsload, sha256 ")
    assert trial["machine"]["wsload"].startswith("wsload ")
    assert str(ROOT) not in json.dumps(trial)
    assert sorted(path.name for path in folder.iterdir()) == [
        "samples.csv", "server.log", "trial.json", "wsload-200.connections.parquet",
        "wsload-200.parquet", "wsload-200.txt",
    ]  # fmt: skip
    tables = tidy.tidy(folder / "trial.json")
    (row,) = tables["points"]
    assert row["outcome_completed"] == row["connections"] == row["server_established_max"] == 200
    assert row["messages_lost"] == row["messages_mismatched"] == 0
    assert row["replies"] == row["messages_due"] > 400
    assert 0 < row["server_rss_per_connection_bytes"] < 20_000
    # Connections came and went before, and nothing of them is left.
    warmed = point["warm_up"]
    assert churn.LEAST_ROUNDS <= len(warmed["rates_cps"]) <= trial["spec"]["churn"]["rounds"]
    assert min(warmed["rates_cps"]) > 0 and warmed["left_established"] == 0
    assert row["warm_up_rounds"] == len(warmed["rates_cps"])
    assert row["warm_up_steady"] == warmed["steady"] == churn.steady(warmed["rates_cps"])
    assert row["opening_rate_cps"] > 0 and 0 < row["connections_opening_max"] <= row["opening"]
    assert row["environment"] == environment and row["server_cpu_ns"] > 0
    quantities = {one["quantity"] for one in tables["times"]}
    assert quantities == {"latency", "service_time", "handshake_time", "connection_time"}
    assert (
        sum(one["count"] for one in tables["seconds"] if one["quantity"] == "latency")
        == (row["messages_due"])
    )


def test_tables_of_the_trials(measured):
    tree, _ = measured
    tree.deathmatch("tidy", "data/tiny/c10k").succeeded()
    points = pl.read_parquet(tree.path / "data/tiny/c10k/points.parquet")
    assert 1 <= len(points) <= 2 and points["report"].unique().to_list() == ["whole"]
    assert len(pl.read_parquet(tree.path / "data/tiny/c10k/seconds.parquet")) > 3
    done = tree.deathmatch("check", "tiny", "--strict", "--json")
    found = json.loads(done.text[done.text.index("{") :])["findings"]
    assert not {"DM-WHOLE", "DM-COUNTERS"} & {one["check"] for one in found}, found


@pytest.mark.timing
@pytest.mark.alone
def test_the_client_s_own_tests_of_time_pass(compiled):
    cargo("test", "--test", "all", OF_TIME)


@pytest.mark.parametrize(("server", "kind"), [("txws", ["--text"]), ("twisted-ws", [])])
def test_a_server_that_knows_no_binary_messages_is_sent_text(server, kind):
    trial = Trial(
        dataset="full", experiment=files.experiment("c10k"), server=files.server(server), n=1,
        plan=files.dataset("full").experiments["c10k"],
        variant=Variant(factors={"opening": 128, "run": "planned"}),
    )  # fmt: skip
    words = GENERATOR.command("10.0.0.1", 8080, trial.spec()["load"], RATE_RPS, DURATION_S)
    assert [word for word in words if word == "--text"] == kind
    # It is asked for signs of life with a message that it sends back.
    asked = conformance.probe(trial.spec()["conformance"], trial.server.deviations)
    assert asked["frames"][0]["opcode"] == ("text" if kind else "binary")


def test_one_process_more_than_cpus_is_a_level():
    assert [context.workers(level, 4) for level in ("one", "all", "all-and-one")] == [1, 4, 5]


@pytest.mark.parametrize(
    ("habit", "problem"),
    [
        ("upgrades", ""),
        ("early-upgrade", ""),
        ("refuses", "invalid answers: outcome_handshake_rejected 10; good ones: 0"),
    ],
)
def test_upgrades_that_it_rejects_are_seen_before_the_trial(programs, tmp_path, habit, problem):
    with few.faulty(habit) as port:
        assert few.asked("wsload", "c10k", port, tmp_path, f"{programs}/") == problem
