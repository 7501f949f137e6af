"""httperf, the patched one: what it can hold, and that its report is read whole or not at all."""

import json
import os
import re
import socket
import subprocess
import threading
import time

import polars as pl
import pytest
from conftest import BROKEN, HUNG_S, ROOT, Tree
from few import Server
from hypothesis import given
from hypothesis import strategies as st

from deathmatch.errors import Truncated
from deathmatch.load import httperf_report
from deathmatch.load.generator import BODY, FIRST_WRONG
from deathmatch.load.httperf import GENERATOR
from deathmatch.plan import files, matrix
from deathmatch.quantities.quantity import RATE, WRONG, only_good

TRIAL = next((ROOT / "tests" / "data" / "yucan").glob("*/1"))
REPORT = (TRIAL / "httperf-2000.txt").read_text()
LOAD = {"uri": "/", "requests_per_connection": 1, "timeout_s": 5}
LOOKS_AFTER = re.search(r"Maximum connect burst length: \d+\n", REPORT)[0]
LOOKS_LINE = "Time between looks at sockets [ms]: longest 12.345 mean 0.017\n"

STATUS_LINE = re.search(r"Reply status: .*\n", REPORT)[0]
WRONG_LINES = "Wrong replies: length 3 content 4\nFirst wrong reply: status 200, content: J\n"


def parse(text: str, duration_s: float) -> dict:
    return GENERATOR.parse((text,), duration_s)


def bins(text: str) -> pl.DataFrame:
    return GENERATOR.histogram((text,))


def test_every_field_of_a_real_report():
    """Each number read off the report by hand."""
    # It is of a patch that counted neither looks at sockets nor lengths of replies.
    wrong = (httperf_report.WRONG_LENGTH, httperf_report.WRONG_CONTENT, FIRST_WRONG)
    later = (*httperf_report.LOOKS, *httperf_report.LIGHT, *wrong)
    unknown = dict.fromkeys(later)
    assert parse(REPORT, 1) == unknown | {
        "connect_burst_connections": int(re.search(r"burst length: (\d+)", REPORT)[1]),
        "connections": 2000, "requests": 2000, "replies": 1995, "test_duration_us": 6_841_000,
        "connection_rate_rps": 292.3, "connection_period_us": 3400, "concurrent_connections": 123,
        "connection_time_min_us": 100, "connection_time_avg_us": 72_600,
        "connection_time_max_us": 4_352_400, "connection_time_median_us": 300,
        "connection_time_stddev_us": 333_800, "connect_time_avg_us": 60_700,
        "connection_length_replies": 1.0,
        "request_rate_rps": 292.3, "request_period_us": 3400, "request_size_bytes": 81.0,
        "reply_rate_min_rps": 0.0, "reply_rate_avg_rps": 306.7, "reply_rate_max_rps": 1929.5,
        "reply_rate_stddev_rps": 699.2, "reply_rate_samples": 13,
        "response_time_avg_us": 14_300, "transfer_time_avg_us": 0,
        "reply_header_bytes": 83.0, "reply_content_bytes": 12.0, "reply_footer_bytes": 0.0,
        "reply_total_bytes": 95.0,
        "replies_1xx": 0, "replies_2xx": 1995, "replies_3xx": 0, "replies_4xx": 0, "replies_5xx": 0,
        "client_cpu_user_us": 1_160_000, "client_cpu_system_us": 3_910_000,
        "client_cpu_user_percent": 16.9, "client_cpu_system_percent": 57.1,
        "client_cpu_total_percent": 74.1,
        "net_io_bytes_per_s": 50.2 * 1024, "net_io_megabit_per_s": 0.4,
        "errors_total": 5, "errors_client_timeout": 5, "errors_socket_timeout": 0,
        "errors_connection_refused": 0, "errors_connection_reset": 0,
        "errors_descriptors_unavailable": 0, "errors_address_unavailable": 0,
        "errors_file_table_full": 0, "errors_other": 0,
        # The first two samples of 0.5 s, 1929.5 and 1830.1.
        "reply_rate_offered_window_rps": pytest.approx((1929.5 + 1830.1) / 2),
    }  # fmt: skip


def test_fields_have_the_types_of_the_schema():
    text = REPORT.replace(LOOKS_AFTER, f"{LOOKS_AFTER}{LOOKS_LINE}", 1)
    text = text.replace(STATUS_LINE, f"{STATUS_LINE}{WRONG_LINES}", 1)
    frame = pl.DataFrame([parse(text, 1)], schema=httperf_report.COLUMNS)
    assert frame.drop(httperf_report.LIGHT).null_count().sum_horizontal()[0] == 0
    assert set(frame.columns) == set(parse(text, 1))
    assert frame["look_interval_max_us"].to_list() == [12_345]
    assert frame["look_interval_mean_us"].to_list() == [17]
    assert frame[httperf_report.WRONG_LENGTH].to_list() == [3]
    assert frame[httperf_report.WRONG_CONTENT].to_list() == [4]
    assert frame[FIRST_WRONG].to_list() == ["status 200, content: J"]


def test_a_report_that_is_not_one_whole_report_is_truncated():
    for end in range(0, len(REPORT), 5):
        with pytest.raises(Truncated):
            parse(REPORT[:end], 1)
    lines = REPORT.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if re.match(r"[A-Z].*: ", line):
            with pytest.raises(Truncated, match=line.split(":")[0][:8]):
                parse("".join(lines[:number] + lines[number + 1 :]), 1)
    with pytest.raises(Truncated, match="more than one report"):
        parse(REPORT + REPORT, 1)


def test_numbers_that_are_none():
    report = REPORT.replace("min 0.1 avg 72.6", "min inf avg -nan")
    fields = parse(report, 1)
    assert fields["connection_time_min_us"] is None and fields["connection_time_avg_us"] is None
    assert fields["connection_time_max_us"] == 4_352_400
    short = re.sub(r"reply-rate = .*\n", "", REPORT).replace("(13 samples)", "(0 samples)")
    assert parse(short, 0.2)["reply_rate_offered_window_rps"] == pytest.approx(1995 / 0.2)


def test_offered_window_has_its_own_samples_only():
    assert httperf_report.reply_rates((REPORT,))[:3] == [1929.5, 1830.1, 64.0]
    for duration_s, samples in ((0.5, 1), (1, 2), (1.4, 2), (1.5, 3)):
        rates = httperf_report.reply_rates((REPORT,))[:samples]
        found = parse(REPORT, duration_s)["reply_rate_offered_window_rps"]
        assert found == pytest.approx(sum(rates) / samples)
    # A sample is longer than such a run.
    short = parse(REPORT, 0.3)
    assert short["reply_rate_offered_window_rps"] == pytest.approx(short["replies"] / 0.3)


def test_a_report_without_replies_leaves_their_times_unknown():
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        load = LOAD | {"timeout_s": 0.2}
        words = GENERATOR.command("127.0.0.1", silent.getsockname()[1], load, 20, 1)
        done = subprocess.run(words, capture_output=True, text=True, timeout=HUNG_S, check=True)
    fields = parse(done.stdout, 1)
    assert (fields["replies"], fields["errors_total"]) == (0, 20)
    assert all(fields[column] is None for column in httperf_report.OF_REPLIES)


def test_progress_is_of_the_offered_time_without_its_first_interval():
    found = GENERATOR.progress((REPORT,), 1.5)
    assert found == httperf_report.reply_rates((REPORT,))[1:3]
    assert GENERATOR.progress((REPORT,), 0.4) == []


def times(report: str) -> list[tuple[int, int]]:
    return bins(report).select("time_us", "count").rows()


def test_histogram_of_a_real_report_agrees_with_its_summary():
    found = times(REPORT)
    fields = parse(REPORT, 1)
    assert sum(count for _, count in found) == fields["replies"]
    mean = sum(time * count for time, count in found) / fields["replies"]
    assert mean == pytest.approx(fields["connection_time_avg_us"], abs=60)
    assert found[-1] == (4_352_425, 1)
    assert found == sorted(found)


@given(st.dictionaries(st.integers(0, 9_999_999), st.integers(1, 2**32 - 1)))
def test_histogram_round_trip(bins):
    """Written as httperf's C does: each bin's centre in ms, a colon where bins are skipped."""
    text, before = "Connection lifetime histogram (time in ms):\n", None
    for bin_, count in sorted(bins.items()):
        if bin_ and before != bin_ - 1:
            text += f"{':':>14}\n"
        text += f"{1e3 * (bin_ + 0.5) * 1e-5:16.3f} {count}\n"
        before = bin_
    text += "\nTotal: connections 1 requests 1 replies 1 test-duration 1.000 s\n"
    assert times(text) == [(10 * bin_ + 5, count) for bin_, count in sorted(bins.items())]


@given(st.integers(1, 10**6), st.sampled_from([1, 3, 10]), st.sampled_from([0.5, 1, 10]))
def test_command_offers_the_rate_for_the_duration(rate_rps, calls, duration_s):
    words = GENERATOR.command(
        "h", 1, LOAD | {"requests_per_connection": calls}, rate_rps, duration_s
    )
    options = dict(word.removeprefix("--").split("=", 1) for word in words if "=" in word)
    assert float(options["rate"]) * calls == pytest.approx(rate_rps, rel=1e-5)
    asked = int(options["num-conns"])
    assert asked >= 1
    assert asked == pytest.approx(rate_rps * duration_s / calls, abs=1)
    assert ("Connection: close" in words[-1]) == (calls == 1)


CUT_EVERY = 4


@pytest.mark.parametrize("body", [{}, {BODY: "Hello, world"}])
def test_bodies_that_are_cut_are_wrong_answers(body):
    def answer(number, connection, _):
        """Answer with 12 bytes; of every CUT_EVERY connections, one ends after 5 of them."""
        content = b"Hello, world"[: 5 if number % CUT_EVERY == CUT_EVERY - 1 else None]
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n" + content)
        connection.close()

    with Server(answer) as peer:
        words = GENERATOR.command("127.0.0.1", peer.port, LOAD | body, 100, 0.4)
        done = subprocess.run(words, capture_output=True, text=True, timeout=HUNG_S, check=True)
    fields = parse(done.stdout, 0.4)
    cut = 40 // CUT_EVERY
    assert (fields["replies"], fields["replies_2xx"], fields["errors_total"]) == (40, 40, 0)
    assert GENERATOR.invalid(fields) == {httperf_report.WRONG_LENGTH: cut}
    shown = "content as far as it came: Hello" if body else "cut: "
    assert fields[FIRST_WRONG] == f"status 200, {shown}"
    counted = only_good(pl.DataFrame([fields | {RATE: 100}], schema_overrides=GENERATOR.columns))
    assert (counted["replies"].item(), counted[WRONG].item()) == (40 - cut, cut)


def test_connection_longer_than_the_histogram_goes_into_its_last_bin(tmp_path):
    """A connection of about 150 s, on a clock 100 times as fast."""
    library = tmp_path / "fast_clock.so"
    source = ROOT / "tests" / "fast_clock.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer_late() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                time.sleep(1.5)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                connection.recv(4096)

        thread = threading.Thread(target=answer_late)
        thread.start()
        load = LOAD | {"timeout_s": 10_000}
        words = GENERATOR.command("127.0.0.1", listener.getsockname()[1], load, 1, 1)
        done = subprocess.run(
            words, env=os.environ | {"LD_PRELOAD": str(library)}, capture_output=True, text=True,
            timeout=HUNG_S,
        )  # fmt: skip
        thread.join()
    assert done.returncode == 0, done.stderr
    lifetime_us = parse(done.stdout, 1)["connection_time_max_us"]
    assert 140e6 < lifetime_us < 1000e6
    assert times(done.stdout) == [(99_999_995, 1)]


# Runs in the sandbox: httperf opens connections to a server that never answers.
HOLD = """
import json, subprocess, sys, time
from pathlib import Path
from deathmatch.builds import clone
from deathmatch.hosts import netns_testbed
from deathmatch.load import httperf
from deathmatch.plan import files
bed = files.testbed("netns")
hosts = netns_testbed.build(bed, {}, clone.on)
hosts.raise_descriptors()
words = [sys.executable, sys.argv[1], "holds", hosts.address, "8080"]
server = hosts.server.start(words)
time.sleep(1)
load = {"uri": "/", "requests_per_connection": 1, "timeout_s": 4}
words = httperf.GENERATOR.command(hosts.address, 8080, load, 5000, 2.2)
report = Path("report.txt")
client = hosts.clients[0].start(hosts.installations["client"].located(words), output=report)
held = 0
while client.wait(0.05) is None:
    held = max(held, hosts.clients[0].counters()["snmp"]["Tcp CurrEstab"])
print(json.dumps({"status": client.wait(), "held": held, "report": report.read_text()}))
server.kill()
hosts.end()
"""


@pytest.mark.alone
def test_ten_thousand_connections_at_once(shared_tree: Tree):
    found = json.loads(shared_tree.sandboxed("python", "-c", HOLD, BROKEN).succeeded().text)
    fields = parse(found["report"], 2.2)
    assert found["status"] == 0
    assert found["held"] >= 10_000
    assert fields["concurrent_connections"] >= 10_000
    assert fields["connections"] == 11_000 and fields["errors_client_timeout"] == 11_000
    assert fields["errors_descriptors_unavailable"] == 0 and fields["errors_other"] == 0


PORTS = 8_000
NARROW = f"""extends = "netns"

[client.sysctl]
"net.ipv4.ip_local_port_range" = "20000 {20_000 + PORTS - 1}"
"""


@pytest.mark.parametrize(("experiment", "calls"), [("backlog", 1), ("dynamic", 2)])
def test_more_new_connections_than_ports_within_a_minute(shared_tree: Tree, experiment, calls):
    """Neither ports nor descriptors run out; there are fewer ports than usual, to take less time.

    After one call the server closes first, after two the client, whose ports then stay in
    TIME_WAIT for a minute. The rate is a tenth of httperf's most: a busy machine can offer it, too.
    """
    tree, seconds, rate_cps = shared_tree, 3, 3_000
    connections = rate_cps * seconds
    assert connections > 1.1 * PORTS
    tree.write("config/testbeds/narrow.toml", NARROW)
    file = f"experiments/{experiment}.toml"
    text = re.sub(
        r"(?m)^requests_per_connection = .*", f"requests_per_connection = {calls}",
        (tree.path / file).read_text(),
    )  # fmt: skip
    # A connection that a busy machine serves late must not hold its descriptor for long.
    tree.write(file, re.sub(r"(?m)^timeout_s = .*", "timeout_s = 1", text))
    tree.dataset(
        "flood", ["null"], [rate_cps * calls], seconds, levels="backlog = [1024]",
        experiment=experiment,
    )  # fmt: skip
    spec, null = files.experiment(experiment), files.server("null")
    (variant,) = matrix.product(spec, {"backlog": (1024,)}, null)
    path = f"data/flood/{experiment}/null/{variant.name}/1"
    tree.deathmatch("trial", path, "--testbed", "narrow").succeeded()
    folder = tree.path / path
    point = json.loads((folder / "trial.json").read_text())["points"][0]
    fields = parse((folder / point["log"]).read_text(), seconds)
    samples = pl.read_csv(folder / "samples.csv").drop_nulls("offered_rate_rps")
    assert point["client_state"] == "exit 0" and point["server_state"] == "ran"
    for what in ("descriptors_unavailable", "address_unavailable", "file_table_full", "other"):
        assert fields[f"errors_{what}"] == 0
    assert fields["connections"] == connections
    # The kernel counts connections that httperf gave up; those without a port would come on top.
    failed = samples["client_attempt_fails"][-1] - samples["client_attempt_fails"][0]
    assert failed <= fields["errors_client_timeout"]
    opened = samples["client_active_opens"][-1] - samples["client_active_opens"][0]
    assert opened >= connections
    if calls > 1:
        assert samples["client_time_wait"].max() > fields["replies"] / calls / 5
