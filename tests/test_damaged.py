"""Damaged inputs that once crashed, hung or gave a wrong value; `tests/fuzz` found them."""

import errno
import json
import re
import struct

import pytest
from conftest import ROOT
from fuzz.samples import ROUNDTRIP, SUMMARY, TIMES

from deathmatch.agent import diag, kernel, wire
from deathmatch.analysis import published
from deathmatch.cli import main as command_line
from deathmatch.data import kernel_samples, records, tidy
from deathmatch.errors import Truncated, UserError
from deathmatch.load import registry, wsload
from deathmatch.measure import server_process
from deathmatch.plan import files, validation_errors

TRIAL = next((ROOT / "tests" / "data" / "yucan").glob("*/1"))
HTTPERF = (TRIAL / "httperf-500.txt").read_text()
RECORD = json.loads((TRIAL / "trial.json").read_text())


# The text of a report, and how the report is made of it; wsload has a table of times, too.
SOUND = {
    "httperf": (HTTPERF, lambda text: (text,)),
    "roundtrip": (ROUNDTRIP[0].decode(), lambda text: (text,)),
    "wsload": (SUMMARY.decode(), lambda text: wsload.Report((text,), TIMES)),
}


@pytest.mark.parametrize(
    ("name", "found", "damaged"),
    [
        ("httperf", r"test-duration [\d.]+", "test-duration -1.0"),
        ("httperf", r"Net I/O: [\d.]+", f"Net I/O: {'9' * 306}"),
        ("httperf", r"2xx=\d+", "2xx=7"),
        ("httperf", r"( +0\.\d{3}) \d+\n", r"\1 99999\n"),
        ("roundtrip", "connections: 8\n", "connections: eight\n"),
        ("roundtrip", "offered_rate_rps: 200.000", "offered_rate_rps: nan"),
        ("roundtrip", "latency 160.000 161.024 4", "latency 160.000 161.024 5"),
        ("roundtrip", "errors_other: 1", "errors_other: 0"),
        ("wsload", '"cpu_us": 5', '"cpu_us": -5'),
        ("wsload", '"loop_busy_share": 0.5', '"loop_busy_share": NaN'),
        ("wsload", '"echoed_count": 4', '"echoed_count": 5'),
        ("wsload", '"mismatched_count": 0', '"mismatched_count": null'),
        ("wsload", '"refused": 1', '"rejected": 1'),
        ("wsload", '"connections": {', f'"connections": {"[" * 3000}{{'),
    ],
)
def test_an_impossible_report_is_refused(name, found, damaged):
    text, report = SOUND[name]
    wrong, generator = re.sub(found, damaged, text, count=1), registry.generator(name)
    assert wrong != text
    generator.parse(report(text), 1)
    with pytest.raises(Truncated):
        generator.parse(report(wrong), 1)


@pytest.mark.parametrize(
    ("damage", "wrong"),
    [
        (lambda text: text[:-3], "the last line has no end"),
        (lambda text: text.replace("\n179,", "\n-179,", 1), "a number of time_us cannot be"),
        (lambda text: text.replace("\n179,", "\n99999999999,", 1), "not in the order"),
        (lambda text: text.replace("\n179,,", "\n179,,,", 1), "not 37 values"),
        (lambda text: text.replace("\n179,,0,", f"\n179,,{'9' * 99},", 1), "conversion"),
    ],
)
def test_damaged_samples_are_reported_with_their_file(tmp_path, damage, wrong):
    text = (TRIAL / "samples.csv").read_text()
    file = tmp_path / "samples.csv"
    file.write_text(damage(text))
    with pytest.raises(UserError, match=wrong) as caught:
        kernel_samples.read(file)
    assert caught.value.where.startswith(str(file)) and "measured again" in caught.value.remedy


@pytest.mark.parametrize(
    "changed",
    [
        {"points": [RECORD["points"][0]] * 2},
        {"points": [RECORD["points"][0] | {"log": "../../../etc/passwd"}]},
        {"started_at": "2026-99-99T00:00:00Z"},
        {"server": "../../x"},
        {"spec": {key: RECORD["spec"][key] for key in RECORD["spec"] if key != "duration_s"}},
        {"wall_us": float("nan")},
    ],
)
def test_an_impossible_record_is_refused_with_its_name(tmp_path, changed):
    file = tmp_path / "backlog=1" / "1" / "trial.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(RECORD | changed))
    with pytest.raises(UserError) as caught:
        tidy.tidy(file)
    assert str(file) in caught.value.where


def test_a_record_of_brackets_alone_is_no_json(tmp_path):
    file = tmp_path / "trial.json"
    file.write_text("[" * 100_000)
    with pytest.raises(records.NotJson):
        records.read(file)


TOO_MUCH = ["a = " + "9" * 5000, "a = " + "[" * 3000]


@pytest.mark.parametrize("text", TOO_MUCH)
def test_settings_that_cannot_be_parsed_are_no_toml(tmp_path, text):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    readers = (published.claims, published.untested, lambda path: registry.read("mine", path))
    with pytest.raises(UserError, match="not TOML"):
        validation_errors.parse(text.encode(), "here")
    for read in readers:
        with pytest.raises(UserError) as caught:
            read(file)
        assert caught.value.where


def test_a_client_that_names_itself_is_refused(tmp_path):
    file = tmp_path / "client.toml"
    file.write_bytes((ROOT / "clients/httperf/client.toml").read_bytes() + b"\n")
    assert registry.read("mine", file).name == "mine"
    file.write_text(f'name = "other"\n{file.read_text()}')
    with pytest.raises(UserError, match="its own folder"):
        registry.read("mine", file)


@pytest.mark.parametrize("name", ["a" * 300, "a\0b", "..", "../../x", "/etc", "-n", "a\nb", "a;b"])
def test_a_name_that_leads_elsewhere_is_refused(name):
    for kind in files.MODELS:
        with pytest.raises(UserError, match="there is no"):
            files.load(kind, name)


def test_a_blank_word_on_the_command_line_is_refused():
    with pytest.raises(UserError, match="unrecognized arguments"):
        command_line.main(["trial", "here", " "])


def test_an_agent_s_line_of_brackets_alone_is_no_message():
    with pytest.raises(ValueError):
        wire.message(b"[" * 100_000)


def test_counters_with_fewer_values_than_names_are_refused():
    with pytest.raises(ValueError):
        kernel.parse("Tcp: ActiveOpens PassiveOpens\nTcp: 1\n")


def test_an_impossible_count_of_system_calls_is_left_out():
    assert server_process.parse_strace(f"read 12\nwrite {'9' * 5000}\n") == {"read": 12}


@pytest.mark.parametrize(
    "received",
    [
        # A length of 0 would be read for ever.
        struct.pack("=IHHII", 0, 20, 2, 1, 0),
        struct.pack("=IHHII", 16, 20, 2, 1, 0),
        struct.pack("=IHHII", 99, 20, 2, 1, 0),
        struct.pack("=IHHIIi", 20, 2, 2, 1, 0, 0),
        b"\0",
    ],
)
def test_bytes_that_are_no_list_of_sockets_are_refused(received):
    with pytest.raises(OSError) as caught:
        diag.parsed(received)
    assert caught.value.errno == errno.EBADMSG
