"""wsload's records to histograms, its command line, and a real trial with it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import few
import numpy as np
import polars as pl
import pytest
from conftest import HUNG_S, ROOT, Tree, first_line
from hypothesis import given, settings
from hypothesis import strategies as st
from side_by_side import turn

from deathmatch.builds import clients, server_build, server_commands
from deathmatch.errors import Truncated
from deathmatch.load import registry, wsload, wsload_records
from deathmatch.load.wsload import GENERATOR
from deathmatch.measure import churn, conformance
from deathmatch.plan import files
from deathmatch.plan.trial import Trial, Variant

NULL = registry.client("wsload").built_by

LOAD = {"message_bytes": 33, "interval_s": 0.1, "opening": 16, "timeout_s": 1, "drain_s": 0.5}
RATE_RPS, DURATION_S = 500, 2


# A fixture of the module makes its tests one unit: a single worker waits for the build.
@pytest.fixture(scope="module")
def wsload_built() -> Path:
    """The folder that holds wsload and ws-null, built if they are not."""
    built = server_build.built(files.server(NULL))
    assert built["ok"], built["log"]
    return server_commands.build_dir(NULL) / "bin"


TARGET = ROOT / "build" / "cargo"
OF_TIME = "timing::"
"""The prefix of the client's tests that measure times; they run alone."""


def cargo(*words: str) -> None:
    """Run cargo on the client as it is tested, apart from what the measurements use."""
    # An incremental build takes a third longer, and this is built once.
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
        # One at a time: on a busy machine both together print nothing for longer than HUNG_S.
        for target in (["--lib"], ["--test", "all"]):
            cargo("test", "--no-run", *target)


@pytest.mark.timing
def test_the_client_s_own_tests_pass(compiled):
    """All but those that measure times; the freeze test on a real server is among them."""
    cargo("test", "--lib", "--test", "all", "--", "--skip", OF_TIME)


class Null:
    """The null server on a free port."""

    def __init__(self, wsload_built: Path):
        words = [wsload_built / "ws-null", "127.0.0.1:0"]
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
    GENERATOR.compact(log)
    late = connections.with_columns(late_us=pl.col("started_us") - pl.col("intended_us"))
    return late.sort("connection"), GENERATOR.parse(GENERATOR.read(log), DURATION_S)


def took_us(events: pl.DataFrame, end: str) -> np.ndarray:
    """Return the sorted times from intention to end of all that ended, to three digits."""
    ended = events.drop_nulls(end).select(end, "intended_us").rows()
    return np.sort([int(float(f"{end_us - begin_us:.2e}")) for end_us, begin_us in ended])


@pytest.mark.timing
@pytest.mark.alone
def test_statistics_and_seconds_are_those_of_the_raw_events(wsload_built, tmp_path):
    """The server stops before the end, so that messages are lost."""
    with Null(wsload_built) as null:

        def freeze() -> None:
            time.sleep(DURATION_S - 0.4)
            os.kill(null.process.pid, signal.SIGSTOP)

        log = run(tmp_path, null.port, freeze)
    messages = pl.read_parquet(log.with_suffix("") / "messages" / "*.parquet")
    connections = pl.read_parquet(log.with_suffix("") / "connections.parquet")
    GENERATOR.compact(log)
    assert {path.name.removeprefix(log.stem) for path in tmp_path.iterdir()} == {
        ".connections.parquet", ".parquet", ".txt",
    }  # fmt: skip
    report = GENERATOR.read(log)
    fields = GENERATOR.parse(report, DURATION_S)
    pl.DataFrame([fields], schema=GENERATOR.columns, strict=True)
    latency = took_us(messages, "received_us")
    due = len(messages)
    assert (fields["messages_due"], fields["replies"]) == (due, len(latency))
    assert fields["messages_lost"] + fields["messages_unsent"] == due - len(latency) > 20
    assert fields["message_latency_mean_us"] == pytest.approx(latency.mean())
    assert fields["message_latency_stddev_us"] == pytest.approx(latency.std())
    assert fields["message_latency_max_us"] == latency.max()
    assert fields["message_latency_p50_us"] == latency[int(np.ceil(0.5 * due)) - 1]
    # More than a hundredth is lost, which includes this quantile.
    assert fields["message_latency_p99_us"] is fields["message_latency_p999_us"] is None
    upgrades = took_us(connections, "upgraded_us")
    assert fields["handshake_time_p95_us"] == upgrades[int(np.ceil(0.95 * len(upgrades))) - 1]
    assert fields["connections"] == fields["connections_upgraded"] == 50
    assert fields["connection_timeouts"] == 0
    found = GENERATOR.seconds(report).filter(pl.col("quantity") == "latency")
    assert found["count"].sum() == due
    for row in found.to_dicts():
        mine = messages.filter(pl.col("intended_us") // 1_000_000 == row["since_start_s"])
        latency = took_us(mine, "received_us")
        assert (row["count"], row["lost"]) == (len(mine), len(mine) - len(latency))
        rank = int(np.ceil(0.5 * len(mine))) - 1
        assert row["p50_us"] == (latency[rank] if rank < len(latency) else None)
        assert row["max_us"] == (latency[-1] if len(latency) else None)
    whole = report.texts[0].rstrip()
    for end in range(0, len(whole), 7):
        with pytest.raises(Truncated):
            GENERATOR.parse(wsload.Report((whole[:end],), report.times, report.shares), DURATION_S)


def test_times_keep_three_digits_and_unfinished_ones_count(tmp_path):
    (tmp_path / "messages").mkdir()
    rows = [(end_us, 0, 7) for end_us in (9_999, 12_340, 12_344, 1_234_567, None)]
    messages = pl.DataFrame(rows, schema=["received_us", "intended_us", "sent_us"], orient="row")
    messages.write_parquet(tmp_path / "messages" / "0.parquet")
    columns = ["intended_us", "started_us", "connected_us", "upgraded_us"]
    connections = pl.DataFrame([(5, 6, 15, 25), (5, 6, 15, None)], schema=columns, orient="row")
    connections.write_parquet(tmp_path / "connections.parquet")
    found = wsload_records.histograms(tmp_path)
    kept = {
        quantity: frame.select("time_us", "count").rows()
        for (quantity,), frame in found.group_by("quantity", maintain_order=True)
    }
    assert kept == {
        "latency": [(10_000, 1), (12_300, 2), (1_230_000, 1), (None, 1)],
        "service_time": [(9_990, 1), (12_300, 2), (1_230_000, 1), (None, 1)],
        "handshake_time": [(20, 1), (None, 1)],
        "connection_time": [(10, 2)],
    }
    assert wsload_records.of_steps(wsload_records.steps(found)).equals(found)


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


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 10**8)), min_size=1, max_size=40))
def test_rounding_keeps_three_digits_and_all_counts(rows):
    times = [(0, second * 10**6, second * 10**6, second * 10**6 + us) for second, us in rows]
    schema = ["connection", "intended_us", "sent_us", "received_us"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "messages").mkdir()
        pl.DataFrame(times, schema, orient="row").write_parquet(Path(folder) / "messages/0.parquet")
        frame = wsload_records.histograms(Path(folder)).filter(quantity="latency")
    bins = GENERATOR.histogram(wsload.Report(("",), frame))
    assert bins["count"].sum() == len(rows)
    assert all(len(str(us).rstrip("0")) <= 3 for us in bins["time_us"])


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
def test_ten_thousand_handshakes_are_under_way_at_once(wsload_built, tmp_path):
    """The server, in its own network namespace, answers once it has all requests.

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
def test_connections_are_begun_at_the_pace_of_the_posts_client(wsload_built, tmp_path):
    with Null(wsload_built) as null:
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
def test_connections_that_time_out_do_not_slow_the_beginning_of_others(wsload_built, tmp_path):
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


def test_connections_slower_than_the_posts_limit_count_as_its_timeouts():
    rows = [("connection_time", 0, us, n) for us, n in ((1_999_999, 3), (2_000_001, 4), (None, 5))]
    rows.append(("handshake_time", 0, None, 12))
    times = pl.DataFrame(rows, wsload_records.TIMES_SCHEMA, orient="row")
    summary = few.summary_of_wsload(
        connections=dict.fromkeys(("intended", "opened", "upgraded"), 12),
        outcomes={"completed": 7, "connect_timeout": 2, "refused": 3}, limited_by=["this", "that"],
    )  # fmt: skip
    fields = GENERATOR.parse(wsload.Report((summary,), times), 1)
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


TRIAL = """
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
"""


def measured(tree: Tree) -> Path:
    """Measure one trial of c10k; return its folder."""
    tree.write("config/datasets/tiny.toml", TRIAL)
    (folder,) = tree.trials("tiny").values()
    tree.deathmatch("trial", folder.relative_to(tree.path)).succeeded()
    return folder


def test_a_trial_and_its_tables(tree: Tree, wsload_built):
    for name in ("bin/wsload", "bin/ws-null", "build.json"):
        to = tree.write(f"build/servers/{NULL}/{name}", "")
        shutil.copy2(server_commands.build_dir(NULL) / name, to)
    # As few connections before the trial as the checks allow.
    for old, new in (
        ("connections = 1000", "connections = 100"), ("interval_s = 0.25", "interval_s = 0.05"),
        ("rounds = 30", f"rounds = {churn.LEAST_ROUNDS + 2}"),
    ):  # fmt: skip
        tree.replace("experiments/c10k.toml", f"\n{old}\n", f"\n{new}\n")
    folder = measured(tree)
    trial = json.loads((folder / "trial.json").read_text())
    assert (trial["outcome"], trial["reason"]) == ("measured", "")
    names = {check["name"] for check in trial["conformance"]}
    assert {check.name for check in files.experiment("c10k").conformance} < names
    assert "100 connections at once" in names
    (point,) = trial["points"]
    assert (point["client_state"], point["server_state"]) == ("exit 0", "ran")
    assert trial["tools"]["harness"]["wsload"].startswith("built from clients/wsload, sha256 ")
    assert trial["machine"]["wsload"].startswith("wsload ")
    assert str(ROOT) not in json.dumps(trial)
    assert sorted(path.name for path in folder.iterdir()) == [
        "samples.csv", "server.log", "trial.json", "wsload-200.connections.parquet",
        "wsload-200.parquet", "wsload-200.txt",
    ]  # fmt: skip
    tree.deathmatch("tidy", "data/tiny/c10k").succeeded()
    tables = {path.stem: pl.read_parquet(path) for path in folder.parents[2].glob("*.parquet")}
    (row,) = tables["points"].to_dicts()
    assert row["report"] == "whole"
    assert row["outcome_completed"] == row["connections"] == row["server_established_max"] == 200
    assert row["messages_lost"] == row["messages_mismatched"] == 0
    assert row["replies"] == row["messages_due"] > 400
    assert 0 < row["server_rss_per_connection_bytes"] < 20_000
    # Nothing is left of the connections of the warm-up.
    warmed = point["warm_up"]
    rates_cps = warmed["rates_cps"]
    assert churn.LEAST_ROUNDS <= len(rates_cps) <= trial["spec"]["churn"]["rounds"]
    assert min(rates_cps) > 0 and warmed["left_established"] == 0
    assert (row["warm_up_rounds"], row["warm_up_first_cps"]) == (len(rates_cps), rates_cps[0])
    assert row["warm_up_steady"] == warmed["steady"] == churn.steady(rates_cps)
    assert row["opening_rate_cps"] > 0 and 0 < row["connections_opening_max"] <= row["opening"]
    assert row["server_cpu_ns"] > 0
    quantities = {"latency", "service_time", "handshake_time", "connection_time"}
    assert set(tables["times"]["quantity"]) == quantities
    seconds = tables["seconds"].filter(pl.col("quantity") == "latency")
    assert seconds["count"].sum() == row["messages_due"]
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
    # The check between rates sends a message that the server echoes.
    asked = conformance.probe(trial.spec()["conformance"], trial.server.deviations)
    assert asked["frames"][0]["opcode"] == ("text" if kind else "binary")


@pytest.mark.parametrize(
    ("habit", "problem"),
    [
        ("early-upgrade", ""),
        ("refuses", "invalid answers: outcome_handshake_rejected 10; good ones: 0"),
    ],
)
def test_upgrades_that_it_rejects_are_seen_before_the_trial(wsload_built, tmp_path, habit, problem):
    with few.faulty(habit) as port:
        assert few.asked("wsload", "c10k", port, tmp_path, f"{wsload_built}/") == problem
