"""The checks in full are those of the first trial of a build and a kernel; others name it."""

import json
from pathlib import Path

import pytest

from deathmatch.data import records
from deathmatch.measure import conformance
from deathmatch.plan.trial import Full, conformance_key


@pytest.fixture
def record(tmp_path_factory) -> dict:
    """A record of the reference dataset."""
    import strict_sample

    folder = tmp_path_factory.mktemp("sample")
    strict_sample.unpack("static", lambda name: name.endswith("/1/trial.json"), folder)
    file = min(folder.glob("*/*/*/*/trial.json"))
    return records.read(file)


def write(folder: Path, n: int, record: dict, **more) -> None:
    (folder / str(n)).mkdir()
    full = Full(more.pop("trial", n), conformance_key(record)).record()
    text = json.dumps(record | {"n": n, "full_conformance": full} | more)
    (folder / str(n) / "trial.json").write_text(text)


def test_the_first_trial_has_them_in_full_and_the_next_names_it(tmp_path, record):
    record |= {"n": 2}
    assert conformance.full_trial(tmp_path / "2", record) == Full(2, conformance_key(record))
    write(tmp_path, 1, record)
    assert conformance.full_trial(tmp_path / "2", record) == Full(1, conformance_key(record))


def test_another_kernel_or_build_has_them_in_full_again(tmp_path, record):
    write(tmp_path, 1, record)
    for change in (
        {"version": "of today"},
        {"tools": record["tools"] | {"harness": {"kernel": "7.0"}}},
        {"spec": record["spec"] | {"server_sha256": 64 * "0"}},
    ):
        newer = record | {"n": 2} | change
        assert conformance.full_trial(tmp_path / "2", newer) == Full(2, conformance_key(newer))


def test_a_short_form_or_a_failure_is_no_full_form(tmp_path, record):
    write(tmp_path, 1, record, trial=3)
    write(tmp_path, 3, record, outcome="answers wrongly")
    (tmp_path / "4").mkdir()
    (tmp_path / "4/trial.json").write_text("cut")
    assert conformance.full_trial(tmp_path / "2", record | {"n": 2}).trial == 2


def test_the_short_form_has_the_usual_request_and_the_known_failures():
    requests = [{"name": name, "status": [200]} for name in ("odd", "page", "other")]
    assert [each["name"] for each in conformance.short_form(requests, ["odd"])] == [
        "odd", "page"
    ]  # fmt: skip
