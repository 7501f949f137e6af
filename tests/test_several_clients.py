"""One load of several clients: their parts add up to it, and their reports to one."""

import json
import re
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import polars as pl
import pytest
from conftest import HUNG_S, ROOT
from fuzz.samples import SUMMARY, TIMES
from hypothesis import given
from hypothesis import strategies as st

from deathmatch.data import offered_rate, records, tables, tidy
from deathmatch.errors import UserError
from deathmatch.load import histogram, httperf, registry, roundtrip, wsload
from deathmatch.load.generator import WHOLE, Part

TRIAL = next((ROOT / "tests" / "data" / "yucan").glob("*/1"))
SOURCES = ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
HTTPERF_LOAD = {"uri": "/", "requests_per_connection": 1, "timeout_s": 30}
REQUEST = "GET / HTTP/1.1\r\nHost: here\r\n\r\n"
ROUNDTRIP_LOAD = {"request": REQUEST, "connections": 5, "timeout_s": 30}
RATE_RPS, DURATION_S = 100, 1


def options(words: list[str]) -> dict[str, str]:
    return dict(word.removeprefix("--").split("=", 1) for word in words if "=" in word)


@given(st.integers(0, 10**6), st.integers(1, 12))
def test_shares_add_up_and_hardly_differ(count, clients):
    shares = [Part(index, clients).share(count) for index in range(clients)]
    assert sum(shares) == count and max(shares) - min(shares) <= 1


@given(st.integers(1, 50_000), st.sampled_from([1, 3, 10]), st.sampled_from([0.3, 1, 10]),
       st.integers(2, 9))  # fmt: skip
def test_parts_of_httperf_add_up(rate_rps, calls, duration_s, clients):
    load = HTTPERF_LOAD | {"requests_per_connection": calls}

    def command(part: Part) -> list[str] | None:
        return httperf.GENERATOR.command("h", 1, load, rate_rps, duration_s, part)

    whole = options(command(WHOLE))
    parts = [command(Part(index, clients)) for index in range(clients)]
    busy = [options(words) for words in parts if words]
    # The last clients have no part.
    assert parts[: len(busy)] == [words for words in parts if words]
    assert len(busy) == min(clients, int(whole["num-conns"]))
    assert sum(int(each["num-conns"]) for each in busy) == int(whole["num-conns"])
    rates_rps = [float(each["rate"]) for each in busy]
    assert sum(rates_rps) == pytest.approx(float(whole["rate"]), rel=1e-12)
    for index, each in enumerate(busy):
        place = {"client": f"{index}/{len(busy)}"} if len(busy) > 1 else {}
        own = {"num-conns": each["num-conns"], "rate": each["rate"]} | place
        assert each == whole | own


@given(st.integers(1, 10**5), st.integers(1, 300), st.integers(2, 9))
def test_parts_of_the_others_are_the_whole_with_their_place(rate_rps, at_a_time, clients):
    ws_load = {"message_bytes": 33, "interval_s": 0.5, "opening": at_a_time, "timeout_s": 1,
               "drain_s": 0.5}  # fmt: skip
    made = [
        (wsload.GENERATOR, ws_load, min(max(1, round(rate_rps / 2)), at_a_time)),
        (roundtrip.GENERATOR, ROUNDTRIP_LOAD | {"connections": at_a_time},
         min(at_a_time, 2 * rate_rps)),
    ]  # fmt: skip
    for generator, load, most in made:
        whole = generator.command("10.0.0.1", 1, load, rate_rps, 2)
        parts = [
            generator.command("10.0.0.1", 1, load, rate_rps, 2, Part(index, clients), ["10.0.0.2"])
            for index in range(clients)
        ]
        busy = min(clients, most)
        place = [[f"--client={index}/{busy}"] if busy > 1 else [] for index in range(busy)]
        assert parts == [[*whole, *own, "--source=10.0.0.2"] for own in place] + [None] * (
            clients - busy
        )


def test_idle_connections_are_shared():
    def held(connections: int, index: int) -> str | None:
        words = roundtrip.GENERATOR.idle_command(
            "h", 1, ROUNDTRIP_LOAD, connections, Part(index, 3), ["10.0.0.2"]
        )
        assert words is None or words[-2] == "--source=10.0.0.2"
        return words and words[-1]

    assert [held(100, index) for index in range(3)] == ["--idle=34", "--idle=33", "--idle=33"]
    assert [held(2, index) for index in range(3)] == ["--idle=1", "--idle=1", None]


class Handler(BaseHTTPRequestHandler):
    """Answers GET, and counts connections and requests by the client's address."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.server.connections[self.client_address[0]] += 1

    def do_GET(self):
        self.server.requests[self.client_address[0]] += 1
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


class Listening(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


@pytest.fixture
def server() -> Iterator[Listening]:
    with Listening(("127.0.0.1", 0), Handler) as made:
        made.connections, made.requests = Counter(), Counter()
        threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True).start()
        yield made
        made.shutdown()


def at_once(name: str, port: int, load: dict) -> list[str]:
    """Offer a load by three clients at once; return what each printed."""
    generator = registry.generator(name)
    running = []
    for index, source in enumerate(SOURCES):
        part = Part(index, 3), [source]
        words = generator.command("127.0.0.1", port, load, RATE_RPS, DURATION_S, *part)
        running.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
    said = [process.communicate(timeout=HUNG_S)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], said
    return said


def merged(name: str, texts: list[str]):
    generator = registry.generator(name)
    report = generator.merge([(text,) for text in texts])
    return generator.parse(report, DURATION_S), generator.histogram(report)


def test_three_of_httperf_make_one_load(server):
    texts = at_once("httperf", server.server_address[1], HTTPERF_LOAD)
    seen = server.connections, server.requests
    fields, bins = merged("httperf", texts)
    # Each connects from its own address.
    assert seen == (dict(zip(SOURCES, (34, 33, 33))),) * 2
    assert fields["connections"] == fields["replies"] == fields["replies_2xx"] == 100
    assert fields["errors_total"] == 0
    each = [httperf.GENERATOR.parse((text,), DURATION_S) for text in texts]
    pooled = pl.concat(httperf.GENERATOR.histogram((text,)) for text in texts)
    assert bins["count"].sum() == 100
    assert fields["connection_time_median_us"] == histogram.quantile_us(pooled, 0.5)
    mean = (pooled["time_us"] * pooled["count"]).sum() / 100
    assert fields["connection_time_avg_us"] == pytest.approx(mean, abs=60)
    for name, worst in (("connection_time_max_us", max), ("client_cpu_total_percent", min)):
        assert fields[name] == worst(one[name] for one in each)
    # Only fields that cannot be computed for several clients are null.
    known = {name for name in each[0] if any(one[name] is not None for one in each)}
    unknown = {name for name in known if fields[name] is None}
    assert unknown == set(httperf.GENERATOR.unknown_of_several)


def test_clients_of_httperf_begin_in_turn(server):
    """Client 1 of 2 half a period after its start: its one connection cannot end before."""
    words = httperf.GENERATOR.command(
        "127.0.0.1", server.server_address[1], HTTPERF_LOAD, 1, 2, Part(1, 2)
    )
    assert "--rate=0.5" in words and "--num-conns=1" in words
    text = subprocess.run(words, capture_output=True, text=True, timeout=HUNG_S).stdout
    fields = httperf.GENERATOR.parse((text,), 2)
    assert fields["replies"] == 1 and fields["test_duration_us"] >= 1_000_000


def test_three_of_roundtrip_make_one_load(server):
    texts = at_once("roundtrip", server.server_address[1], ROUNDTRIP_LOAD)
    seen = server.connections, server.requests
    fields, bins = merged("roundtrip", texts)
    # The clients have two, two and one of the five connections, each with a fifth of the requests;
    # the first exchange of each client adds a connection with two.
    assert seen[0] == dict(zip(SOURCES, (3, 3, 2)))
    assert seen[1] == dict(zip(SOURCES, (42, 42, 22)))
    assert fields["connections"] == fields["connects"] == 5
    assert fields["requests"] == fields["replies"] == 100
    assert fields["errors_total"] == fields["unsent"] == 0
    pooled = pl.concat(roundtrip.GENERATOR.histogram((text,)) for text in texts)
    for quantity in ("service_time", "latency", "send_lag"):
        one, of = (frame.filter(pl.col("quantity") == quantity) for frame in (bins, pooled))
        assert one["count"].sum() == of["count"].sum() == 100
        assert one["time_us"].is_unique().all()
        wanted = [0.1, 0.5, 0.99]
        assert histogram.quantiles_us(one, wanted) == histogram.quantiles_us(of, wanted)


@pytest.mark.parametrize(
    ("program", "wrong"),
    [
        ("roundtrip --port=1 --request=a --client=2/2", "--client 2/2: write I/N"),
        ("roundtrip --port=1 --request=a --client=1/2", "no connection of 1 is left for it"),
        ("roundtrip --port=1 --request=a --source=192.0.2.1", "cannot use it as its own"),
        ("httperf --source=192.0.2.1", "--source 192.0.2.1: no IPv4 address of this machine"),
    ],
)
def test_wrong_options_are_refused(program, wrong):
    done = subprocess.run(program.split(), capture_output=True, text=True, timeout=HUNG_S)
    assert done.returncode != 0 and wrong in done.stderr


@pytest.fixture
def planted(tmp_path) -> Path:
    """The recorded trial, as if a second client had seen the same."""
    folder = tmp_path / TRIAL.parent.name / "1"
    shutil.copytree(TRIAL, folder)
    trial = json.loads((folder / "trial.json").read_text())
    for point in trial["points"]:
        log, state = point.pop("log"), point.pop("client_state")
        command = point.pop("command")
        (folder / "b").mkdir(exist_ok=True)
        shutil.copy(folder / log, folder / "b" / log)
        point["offered_rate_rps"] *= 2
        point["clients"] = [
            {"client": name, "log": where, "command": command, "client_state": state,
             "late_us": late_us, "clock_offset_us": -7, "clock_bound_us": 30}
            for name, where, late_us in (("a", log, 4), ("b", f"b/{log}", 250))
        ]  # fmt: skip
    (folder / "trial.json").write_text(json.dumps(trial))
    samples = (folder / "samples.csv").read_text()
    for rate in (2000, 500):
        samples = samples.replace(f",{rate},", f",{2 * rate},")
    (folder / "samples.csv").write_text(samples)
    return folder / "trial.json"


def test_a_trial_of_two_clients_becomes_rows(planted):
    one = tidy.tidy(next(TRIAL.glob("trial.json")))
    two = tidy.tidy(planted)
    for table in ("trials", "points", "times"):
        frame = pl.DataFrame(two[table], tables.columns("backlog", table), orient="row")
        tables.check(frame, "backlog", table, "here")
    (before,), (after,) = one["trials"], two["trials"]
    assert [before[name] for name in ("clients", "late_us", "clock_bound_us")] == [1, None, None]
    assert [after[name] for name in ("clients", "late_us", "clock_bound_us")] == [2, 250, 30]
    for alone, both in zip(one["points"], two["points"]):
        for name in ("connections", "replies", "errors_client_timeout", "replies_2xx"):
            assert both[name] == 2 * alone[name]
        for name in ("connection_time_avg_us", "client_cpu_total_percent", "test_duration_us"):
            assert both[name] == pytest.approx(alone[name], rel=0.01)
        assert both["concurrent_connections"] is None and both["client_state"] == "exit 0"
    of_one, of_two = (sum(row["count"] for row in made["times"]) for made in (one, two))
    assert of_two == 2 * of_one


def test_each_client_is_judged_by_its_own_share():
    load = {"requests_per_connection": 1}
    spec = {"client": "httperf", "factors": {}, "duration_s": 1, "load": load}
    text = (TRIAL / "httperf-500.txt").read_text()

    def with_cpu(percent: float) -> str:
        return re.sub(r"(?m)^(CPU time .*) total [\d.]+%\)$", rf"\1 total {percent}%)", text)

    clean, shared = with_cpu(99.0), with_cpu(60.0)

    def limited(texts: list[str], opened: list[int | None]) -> bool:
        point = {
            "offered_rate_rps": 1000, "fresh_start": True, "server_state": "ran",
            "clients": [{"client": f"{n}", "log": f"{n}", "command": "", "client_state": "exit 0",
                         "opened": count} for n, count in enumerate(opened)],
        }  # fmt: skip
        parts = [(text,) for text in texts]
        _, row = tidy.point_row(point, parts, offered_rate.NO_SAMPLES, spec)
        return row["client_limited"]

    assert not limited([clean, clean], [500, 500])
    # 97.8 % of all were offered, yet one of the two fell behind.
    assert limited([clean, clean], [500, 478])
    assert limited([clean, shared], [500, 500])
    # Neither a count nor a sample shows the rate.
    assert limited([clean, clean], [None, None])


def test_the_limit_of_a_client_is_reported_with_its_name():
    def report(reasons: list[str]) -> wsload.Report:
        summary = json.loads(SUMMARY)
        summary["client"]["limited_by"] = reasons
        return wsload.Report((json.dumps(summary),), TIMES)

    parts = [report([]), report(["it sent late"])]
    point = {
        "offered_rate_rps": 10, "fresh_start": True, "server_state": "ran",
        "clients": [{"client": name, "log": name, "command": "", "client_state": state}
                    for name, state in (("left", "exit 0"), ("right", "exit 5"))],
    }  # fmt: skip
    spec = {"client": "wsload", "factors": {}, "duration_s": 1, "load": {}}
    _, row = tidy.point_row(point, parts, offered_rate.NO_SAMPLES, spec)
    assert row["client_limited"] and row["client_limited_by"] == "right: it sent late"
    assert row["client_state"] == "right: exit 5"


@pytest.mark.parametrize(
    ("of_the_point", "of_a_client", "wrong"),
    [
        ({"clients": None}, {}, "this one lacks both"),
        ({"command": "x"}, {}, "a point of several clients has no command of its own"),
        ({}, {"log": "b/httperf-2000.txt"}, "two clients have the same log"),
        ({}, {"client_state": None}, "client_state"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(planted, of_the_point, of_a_client, wrong):
    trial = json.loads(planted.read_text())
    trial["points"][-1]["clients"][0] |= of_a_client
    trial["points"][-1] |= of_the_point
    planted.write_text(json.dumps(trial))
    with pytest.raises(UserError, match=wrong):
        records.read(planted)
