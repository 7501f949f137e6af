"""The round-trip client with real servers: its counts, its times of sending, its latencies."""

import itertools
import re
import socket
import struct
import subprocess
import threading
import time

import polars as pl
import pytest
from conftest import HUNG_S, ROOT, first_line
from few import Server

from deathmatch.errors import Truncated
from deathmatch.load import histogram, httperf, registry, roundtrip, roundtrip_calls
from deathmatch.load.generator import Part
from deathmatch.load.roundtrip import GENERATOR

pytestmark = [pytest.mark.alone, pytest.mark.timing]

REQUEST = "PING\r\n\x00\\"
LOAD = {"request": REQUEST, "connections": 4, "timeout_s": 1}


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> str:
    out = tmp_path_factory.mktemp("roundtrip")
    subprocess.run([ROOT / "clients" / "roundtrip" / "build", out], check=True)
    return str(out / "bin" / "roundtrip")


def report(client: str, port: int, rate_rps: int = 0, duration_s: float = 0.5, **load) -> str:
    words = GENERATOR.command("127.0.0.1", port, LOAD | load, rate_rps, duration_s)
    done = subprocess.run(
        [client, *words[1:]], capture_output=True, text=True,
        timeout=GENERATOR.time_limit_s(LOAD | load, duration_s),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def times(text: str, quantity: str) -> pl.DataFrame:
    return GENERATOR.histogram((text,)).filter(pl.col("quantity") == quantity)


def parse(text: str, duration_s: float) -> dict:
    return GENERATOR.parse((text,), duration_s)


def slower(text: str, quantity: str, than_us: int) -> int:
    return times(text, quantity).filter(pl.col("time_us") > than_us)["count"].sum()


def test_closed_loop_counts_and_times_every_answer(client):
    seen = []

    def answer(_, connection, data):
        seen.append(data)
        time.sleep(0.01)
        connection.sendall(data)

    with Server(answer) as peer:
        text = report(client, peer.port)
    fields = parse(text, 0.5)
    assert set(seen) == {REQUEST.encode("latin-1")}
    # The first exchange has two more.
    assert fields["requests"] == fields["replies"] == len(seen) - 2 > 20
    assert fields["errors_total"] == fields["unsent"] == fields["idle_losses"] == 0
    assert fields["connects"] == fields["connections"] == 4
    assert fields["request_bytes"] == fields["reply_bytes"] == len(REQUEST)
    assert fields["loop"] == "closed" and fields["reply_begins"] == "PING...\\"
    assert 0 <= fields["replies"] - fields["replies_offered_window"] <= 4
    assert slower(text, "service_time", 9_900) == fields["replies"]
    assert times(text, "latency").is_empty() and fields["send_lag_p99_us"] is None
    pl.DataFrame([fields], schema=roundtrip.COLUMNS, strict=True)


def test_open_loop_sends_at_its_rate_spread_over_the_connections(client):
    with Server() as peer:
        text = report(client, peer.port, 200, 1)
        late_s = [at_s - number / 200 for number, at_s in enumerate(peer.arrivals[2:])]
    fields = parse(text, 1)
    assert fields["requests"] == fields["replies"] == 200
    assert fields["errors_total"] == fields["unsent"] == 0
    # It does not spin while it waits.
    assert fields["client_cpu_total_percent"] < 50
    # The least late of each connection's. All four at once would be 15 ms apart.
    least_s = [min(late_s[connection::4]) for connection in range(4)]
    assert max(least_s) - min(least_s) < 0.007
    for quantity in ("service_time", "latency", "send_lag"):
        assert times(text, quantity)["count"].sum() == 200


def test_a_freeze_shows_in_the_latency_of_all_that_was_due(client):
    """One stall of 0.6 s in 1.5 s at a constant rate: four requests wait for it, but 0.5 s worth
    of them, a third, were meant to be answered while it lasted and wait more than 0.1 s."""
    thaw = threading.Event()

    def answer(number, connection, data):
        if number == 100:
            threading.Timer(0.6, thaw.set).start()
        if number >= 100:
            thaw.wait()
        connection.sendall(data)

    with Server(answer) as peer:
        text = report(client, peer.port, 200, 1.5)
    assert parse(text, 1.5)["replies"] == 300
    # Other work on the machine makes more of them slow, never fewer.
    assert slower(text, "service_time", 100_000) >= 4
    assert slower(text, "latency", 100_000) >= 90


def test_coarser_bins_count_late_replies_alike(client):
    """Every tenth answer takes 25 ms: later than the first limit, not than the second."""

    def answer(number, connection, data):
        time.sleep(0.025 * (number % 10 == 0))
        connection.sendall(data)

    with Server(answer) as peer:
        text = report(client, peer.port, 200, 1)
    limits_us = (10_000, 1_000_000)
    coarse = roundtrip.coarser(text, limits_us)
    assert parse(coarse, 1) == parse(text, 1)
    for limit_us in limits_us:
        for quantity in ("latency", "service_time"):
            assert slower(coarse, quantity, limit_us) == slower(text, quantity, limit_us)
    assert slower(text, "latency", 10_000) >= 20
    assert 2 <= len(times(coarse, "latency")) <= 3 < len(times(text, "latency"))
    assert times(coarse, "send_lag").equals(times(text, "send_lag"))
    assert roundtrip.coarser(coarse, limits_us) == coarse


def test_overload_leaves_requests_unsent_and_counts_them(client):
    def answer(_, connection, data):
        time.sleep(0.05)
        connection.sendall(data)

    with Server(answer) as peer:
        fields = parse(report(client, peer.port, 2000, 0.5, timeout_s=0.3), 0.5)
    resolved = fields["replies"] + fields["errors_total"]
    assert fields["unsent"] == 1000 - resolved > 800
    assert fields["reply_rate_offered_window_rps"] == pytest.approx(80, rel=0.3)
    assert GENERATOR.actual_rate_rps(fields, pl.DataFrame(), {"duration_s": 0.5}) < 120


def reset(_, connection, __):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nHello, world"


def cut(_, connection, __):
    connection.sendall(ANSWER[:-5])
    connection.close()


FAULTS = {
    "client_timeout": lambda *_: None,
    "connection_reset": reset,
    "connection_closed": lambda _, connection, __: connection.close(),
    "answer_different": lambda _, connection, __: connection.sendall(ANSWER[:-5] + b"WORLD"),
    "answer_cut": cut,
}
FAULTY = dict(zip((10, 20, 30, 40, 50), FAULTS.values()))
"""Each fault once, by the number of its request."""


@pytest.mark.parametrize(
    ("rate_rps", "words"),
    [(0, ["--connections=4"]), (200, ["--connections=4"]), (100, ["--calls=2"])],
)
def test_each_fault_is_an_error_of_its_class(client, rate_rps, words):
    """In closed and open loop, and on a connection of its own for each few requests."""

    def answer(number, connection, data):
        FAULTY.get(number, lambda *_: connection.sendall(ANSWER))(number, connection, data)

    with Server(answer) as peer:
        counts, _ = opened(client, peer.port, rate_rps, *words, "--timeout=0.2")
    assert {name: counts[f"errors_{name}"] for name in FAULTS} == dict.fromkeys(FAULTS, 1)
    assert counts["errors_total"] == 5 and counts["replies"] > 20
    if "--calls=2" in words:
        assert counts["connects"] == 50 and 90 <= counts["replies"] <= 95
    else:
        assert (counts["connects"], counts["replies"]) == (9, counts["requests"] - 5)


def test_a_server_that_goes_away_refuses_connections(client):
    with Server() as peer:

        def answer(number, connection, data):
            if number == 50:
                peer.shutdown()
                peer.socket.close()
            if number >= 50:
                reset(number, connection, data)
            connection.sendall(data)

        peer.answer = answer
        fields = parse(report(client, peer.port, 200, 0.6), 0.6)
    assert fields["replies"] == 48
    assert fields["errors_connection_refused"] > 40
    assert fields["errors_total"] + fields["replies"] == 120


def established(port: int) -> int:
    lines = subprocess.run(
        ["ss", "-Htn", "state", "established", f"sport = :{port}"], capture_output=True, text=True
    ).stdout  # fmt: skip
    return len(lines.splitlines())


@pytest.mark.parametrize("load", [LOAD, {"uri": "/", "requests_per_connection": 1, "timeout_s": 1}])
def test_idle_connections_are_held_after_one_exchange_and_their_losses_are_counted(client, load):
    """During a load of roundtrip and during one of httperf."""
    held = []
    holder = registry.holder("roundtrip" if "request" in load else "httperf")
    with Server(
        lambda _, connection, data: (connection.sendall(data), held.append(connection))
    ) as peer:
        words = holder.idle_command("127.0.0.1", peer.port, load, 50)
        holding = subprocess.Popen(
            [client, *words[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert first_line(holding) == "idle_connections: 50\n"
        assert (len(peer.arrivals), established(peer.port)) == (52, 50)
        for connection in held[-3:]:
            connection.shutdown(socket.SHUT_RDWR)
        time.sleep(0.2)
        assert (len(peer.arrivals), established(peer.port)) == (52, 47)
        rest, _ = holding.communicate(timeout=HUNG_S)
        assert (rest, holding.returncode) == ("idle_losses: 3\nend\n", 0)


def test_bins_are_narrow_and_a_report_cut_anywhere_is_truncated(client):
    with Server() as peer:
        text = report(client, peer.port, 200, 0.1)
    parse(text, 0.1)
    found = re.findall(r"^service_time ([\d.]+) ([\d.]+) \d+$", text, re.MULTILINE)
    bounds = [(float(lower), float(upper)) for lower, upper in found]
    assert all(0 < upper - lower < 0.01 * lower for lower, upper in bounds)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(bounds))
    for end in range(len(text)):
        with pytest.raises(Truncated):
            parse(text[:end], 0.1)
    lines = text.splitlines(keepends=True)
    for number in range(33):
        with pytest.raises(Truncated):
            parse("".join(lines[:number] + lines[number + 1 :]), 0.1)


def opened(client: str, port: int, rate_rps: int, *words: str) -> tuple[dict[str, int], dict]:
    """Offer connections for half a second: the counts of the report, and its histograms."""
    done = subprocess.run(
        [client, f"--port={port}", "--request=PING\\r\\n\\x00\\\\", f"--rate={rate_rps}",
         "--duration=0.5", *(words or ["--calls=1"])],
        capture_output=True, text=True, timeout=HUNG_S,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    counts = re.findall(r"^(\w+): (\d+)$", done.stdout, re.MULTILINE)
    bins = re.findall(r"^(\w+) ([\d.]+) [\d.]+ (\d+)$", done.stdout, re.MULTILINE)
    shown: dict[str, dict[float, int]] = {}
    for quantity, lower, count in bins:
        shown.setdefault(quantity, {})[float(lower)] = int(count)
    return {name: int(count) for name, count in counts}, shown


@pytest.mark.parametrize("words", [(), ("--gather=0.001",)])
def test_connections_are_opened_at_their_rate_each_with_its_calls(client, words):
    with Server() as peer:
        counts, shown = opened(client, peer.port, 200, "--calls=3", *words)
    assert counts["connects"] == 100 and counts["errors_total"] == 0
    assert counts["requests"] == counts["replies"] == 300 and len(peer.arrivals) == 302
    assert sum(shown["service_time"].values()) == 300
    # One connection, one opening, one time from its intended opening to its last reply.
    for quantity in ("connect_time", "latency", "send_lag"):
        assert sum(shown[quantity].values()) == 100


def test_more_connections_than_may_be_open_are_errors(client):
    with Server(lambda *_: time.sleep(1)) as peer:
        peer.answer = lambda number, connection, data: (
            connection.sendall(data) if number < 2 else None
        )
        counts, _ = opened(client, peer.port, 100, "--calls=1", "--connections=10", "--timeout=0.9")
    assert counts["errors_descriptors_unavailable"] == 40 and counts["errors_client_timeout"] == 10


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("--port 1", 2, "no --request"),
        ("--port 0 --request a", 2, "--port 0: not a number from 1 to 65535"),
        ("--port 1 --request a --rate 5x", 2, "--rate 5x: not a number"),
        (r"--port 1 --request a\q", 2, r"unknown escape \q"),
        ("--port 1 --request-file /dev/zero", 2, "longer than 16384 bytes"),
        ("--port 1 --request a --gather 0.001", 2, "--gather needs --calls"),
        ("--port 1 --request a", 1, "is the server running?"),
    ],
)
def test_mistakes_are_reported(client, words, status, message):
    done = subprocess.run([client, *words.split()], capture_output=True, text=True, timeout=HUNG_S)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith("roundtrip: ") and message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda *_: None, "0 bytes of an answer came within 0.3 s; is the request complete?"),
        (lambda _, c, __: c.close(), "closed the connection after 0 bytes"),
        (lambda n, c, _: c.sendall(b"x" * (5 + n)), "the first answer has 5 bytes, the next 6"),
    ],
)
def test_a_server_that_cannot_be_measured(client, answer, message):
    with Server(answer) as peer:
        words = GENERATOR.command("127.0.0.1", peer.port, LOAD | {"timeout_s": 0.3}, 0, 1)
        done = subprocess.run([client, *words[1:]], capture_output=True, text=True, timeout=HUNG_S)
    assert done.returncode == 1 and done.stdout == "" and message in done.stderr


@pytest.mark.parametrize("words", [("--calls=2",), ("--connections=3",)])
def test_interim_answers_are_skipped_and_counted(client, words):
    """100 and 103 come before the answer, in one segment with it or in one of their own."""
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"

    def answer(number, connection, data):
        if number % 2:
            connection.sendall(interim + ANSWER)
        else:
            connection.sendall(interim)
            time.sleep(0.002)
            connection.sendall(ANSWER)

    with Server(answer) as peer:
        counts, _ = opened(client, peer.port, 100, *words)
    assert counts["errors_total"] == 0 and counts["reply_bytes"] == len(ANSWER)
    assert counts["informational"] == 2 * counts["replies"] > 90


# In httperf's place.
HTTPERF_LOAD = {"uri": "/", "requests_per_connection": 1, "timeout_s": 5}

SHORT_S, LONG_S = 0.02, 1
"""Delays of every other connection, planted."""
MARGIN_S = 0.4
"""How much longer a quantile may be: less than half of the way from one delay to the other, and
more than a busy machine makes a tenth of all connections wait."""
BIN = 0.008
"""The width of roundtrip's bins, as a share; those of httperf are 10 us wide."""


def test_in_httperfs_place_it_counts_and_times_as_httperf_does(client):
    """The same load on the same server by both: equal counts, and the planted times."""

    def answer(number, connection, _):
        time.sleep(SHORT_S if number % 2 == 0 else LONG_S)
        connection.sendall(ANSWER)
        connection.close()

    theirs = registry.generator("httperf")
    ours = registry.of_trial({"client": "roundtrip", "factors": {"load_generator": "roundtrip"}})
    seen = {}
    with Server(answer) as peer:
        for generator, program in ((theirs, "httperf"), (ours, client)):
            words = generator.command("127.0.0.1", peer.port, HTTPERF_LOAD, 50, 1.1)
            text = subprocess.run(
                [program, *words[1:]], capture_output=True, text=True, timeout=HUNG_S
            ).stdout
            fields = seen[generator] = generator.parse((text,), 1.1)
            assert generator.timed((text,), fields).due == 55
            assert len(generator.progress((text,), 1.1)) == 1
            times = generator.histogram((text,)).filter(pl.col("quantity") == "connection_time")
            assert times["count"].sum() == fields["replies"] == 55
            for q in (0.1, 0.25, 0.4, 0.6, 0.75, 0.9):
                delay_s = SHORT_S if q < 0.5 else LONG_S
                time_s = histogram.quantile_us(times, q) / 1e6
                assert (1 - BIN) * delay_s <= time_s <= delay_s + MARGIN_S, (program, q)
    pl.DataFrame([seen[ours]], schema=ours.columns, strict=True)
    assert ours.columns == theirs.columns
    alike = ["connections", "requests", "replies", "replies_2xx", "errors_total",
             "reply_content_bytes", "connection_length_replies"]  # fmt: skip
    assert [seen[ours][name] for name in alike] == [seen[theirs][name] for name in alike]
    # Each reports what the other does, except the fields of its own loop.
    assert {name for name in theirs.columns if seen[ours][name] is None} == {
        "connect_burst_connections", "look_interval_max_us", "look_interval_mean_us",
        "transfer_time_avg_us", "reply_footer_bytes", "replies_wrong_length",
        "replies_wrong_content", "first_wrong_answer",
        "client_cpu_user_percent", "client_cpu_system_percent",
    }  # fmt: skip
    looks = [seen[theirs][f"look_interval_{name}_us"] for name in ("mean", "max")]
    assert looks == sorted(looks) and looks[1] > 0


def test_every_client_of_several_has_its_part_of_the_connections(client):
    load = HTTPERF_LOAD | {"requests_per_connection": 2}
    ours = registry.generator("roundtrip", "httperf")
    texts = []
    with Server(lambda _, connection, __: connection.sendall(ANSWER)) as peer:
        for index in range(2):
            part, source = Part(index, 2), f"127.0.0.{index + 2}"
            words = ours.command("127.0.0.1", peer.port, load, 202, 0.5, part, [source])
            done = subprocess.run(
                [client, *words[1:]], capture_output=True, text=True, timeout=HUNG_S
            )
            texts.append(done.stdout)
    fields = ours.parse(tuple(texts), 0.5)
    assert (fields["connections"], fields["replies"], fields["errors_total"]) == (50, 100, 0)
    assert fields["connection_length_replies"] == 2
    assert fields["concurrent_connections"] is None


def test_what_limits_the_client():
    calm = dict.fromkeys(roundtrip.COLUMNS, 0) | {roundtrip.LEAST_LAG: 100}
    assert not GENERATOR.limited(calm, 100, 20)
    assert GENERATOR.limited(calm | {"client_cpu_total_percent": 99}, 100, 100)
    assert GENERATOR.limited(calm | {roundtrip.LEAST_LAG: 1100}, 100, 100)
    assert not GENERATOR.limited(calm | {roundtrip.LEAST_LAG: None}, 0, 100)
    assert GENERATOR.limited(calm, 100, None)
    ours = registry.generator("roundtrip", "httperf")
    calm = dict.fromkeys(ours.columns, 0) | {roundtrip.LEAST_LAG: 100}
    assert not ours.limited(calm, 100, 100)
    for error in httperf.OWN_ERRORS:
        assert ours.limited(calm | {error: 1}, 100, 100)
    # The client sends in steps of 0.8 ms, which is no limit.
    assert not ours.limited(calm | {roundtrip.LEAST_LAG: 1700}, 100, 100)
    assert ours.limited(calm | {roundtrip.LEAST_LAG: 1900}, 100, 100)


@pytest.mark.parametrize(
    ("sends", "late", "limited"),
    [(10, 3, False), (10, 4, True), (200, 18, False), (200, 19, True), (80_000, 4_100, False),
     (80_000, 4_200, True)],
)  # fmt: skip
def test_a_client_is_late_if_one_send_in_twenty_is(sends, late, limited):
    lags = pl.DataFrame({"time_us": [100.0, 5000.0], "count": [sends - late, late]})
    least = roundtrip._least_lag_us(lags)
    assert (least > roundtrip.SEND_LAG_LIMIT_US) is limited


def test_the_spread_of_a_long_overload_is_a_number():
    """A million connections at once and a million after five seconds: squares exceed 64 bits."""
    bins = pl.DataFrame({"time_us": [0, 5_000_000], "count": [1_000_000, 1_000_000]})
    whole = {"connects": 2_000_000, "most_under_way": 1, "replies": 1, "test_duration_us": 10**7}
    times = {"connection_time": bins, "connect_time": bins}
    found = roundtrip_calls._connections(whole, times)
    assert found["connection_time_stddev_us"] == found["connection_time_avg_us"] == 2_500_000
    none = roundtrip_calls._connections(whole, dict.fromkeys(times, bins[:0]))
    assert none["connection_time_stddev_us"] is None
