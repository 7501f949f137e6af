"""The strict check rejects each corruption in PLANTED, and no sound trial.

Given up, because no table, figure or sentence reads what they change: a log of no point; a rate cut
short (`began_us`); another rate, a flag, or messages of another size in the line in which a report
repeats its command (the command that was run is compared, with that of the variant's other trials);
a check, or that of the backlog, left out of a record; a process that was left.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from conftest import MINIATURE, ROOT
from strict_sample import Sample, broken, unpack

from deathmatch.checks.findings import PASSED, REJECTED, UNCHECKED
from deathmatch.data import archive, inventory
from deathmatch.data.strict import dataset_checks, trial_checks
from deathmatch.data.strict.evidence import Trial
from deathmatch.hosts import network_settings
from deathmatch.plan import files

HTTP = "static/nginx/configuration=tuned,backlog=1024,schedulers=one,readiness=epoll"
# Large experiments have one variant; swapping labels needs two.
TAKEN = {
    "static": r"null/.*",
    "readiness": r"c-readiness/readiness=(epoll|poll),idle_connections=500,.*",
    "overhead": r"otp-echo/layer=echo,schedulers=one,.*",
    "c10k": r"ws-null/schedulers=one,backlog=4096,.*opening=128,.*",
}


@pytest.fixture(scope="module")
def samples(tmp_path_factory, miniature) -> dict[str, Sample]:
    """A small dataset of each kind of load, sound."""
    made = {}
    for experiment, pattern in TAKEN.items():
        folder = tmp_path_factory.mktemp(experiment) / miniature
        unpack(experiment, lambda name, p=pattern: bool(re.match(p, name)), folder)
        made[experiment] = Sample(folder, experiment)
        made[experiment].today()
        made[experiment].tidy()
    return made


def rewrite(sample: Sample, name: str, old: str, new: str) -> None:
    """Put something else into the first trial's log, by a regular expression that occurs there."""
    file = sample.trial / name
    text, count = re.subn(old, new, file.read_text(), flags=re.MULTILINE)
    assert count, (name, old)
    file.write_text(text)


def frame(sample: Sample, table: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    changed = change(pl.read_parquet(sample.table(table)))
    changed.write_parquet(sample.table(table))


def sampled(sample: Sample, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    file = sample.trial / "samples.csv"
    change(pl.read_csv(file, infer_schema_length=None)).write_csv(file)


def growing(column: str, by: float) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Return a change that lets a counter of the samples grow by so much more each microsecond."""
    return lambda table: table.with_columns(
        (pl.col(column) + (by * pl.col("time_us"))).cast(pl.Int64)
    )


def swap(sample: Sample, *, relabel: bool) -> None:
    """Exchange the first trials of two variants; their records too say so if `relabel`."""
    one = sample.trial
    other = next(f.parent for f in sample.files if f.parent.parent != one.parent
                 and f.parent.name == one.name)  # fmt: skip
    aside = sample.folder / "aside"
    one.rename(aside)
    other.rename(one)
    aside.rename(other)
    if relabel:
        specs = [json.loads((each / inventory.RECORD).read_text())["spec"] for each in (one, other)]
        for folder, spec in zip((one, other), reversed(specs)):
            sample.record(lambda record, spec=spec: record.update(spec=spec), folder)


def cut(sample: Sample, name: str) -> None:
    file = sample.trial / name
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def check_of(start: str) -> Callable[[dict], dict]:
    return lambda r: next(c for c in r["conformance"] if c["name"].startswith(start))


def one_other_algorithm(sample: Sample) -> None:
    """All trials say what their settings were, and the first one's client had another algorithm."""
    for file in sample.files:
        first = file.parent == sample.trial
        name = "net.ipv4.tcp_congestion_control"
        settings = {
            "server": {name: "cubic"}, "client": {name: "bbr" if first else "cubic"},
        }  # fmt: skip
        recorded = network_settings.record(settings)
        sample.record(lambda r, recorded=recorded: r.update(network_settings=recorded), file.parent)


def one_other_pacing(sample: Sample) -> None:
    """All summaries say how messages were paced, and the first trial's were paced otherwise."""
    for file in sample.files:
        step_us = 2000 if file.parent == sample.trial else 0
        for log in file.parent.glob("wsload-*.txt"):
            pacing = f'"client": {{"step_us": {step_us}, "hold_us": 0, '
            log.write_text(log.read_text().replace('"client": {', pacing))


def wrong_echoes(sample: Sample) -> None:
    """The first trial's report has more of them than were counted when it ended."""
    rewrite(sample, "wsload-10000.txt", '"mismatched_count": 0', '"mismatched_count": 5')
    sample.record(lambda record: record["points"][0].update(wrong_answers=0))


def half_packed(sample: Sample) -> None:
    """Pack its raw logs, and lose the archive's end."""
    folder = sample.folder / sample.experiment
    made = archive.write(folder / archive.NAME, folder, [file.parent for file in sample.files])
    made.write_bytes(made.read_bytes()[:9999])


def point(index: int, **changed) -> Callable[[dict], object]:
    return lambda record: record["points"][index].update(changed)


RAW, TABLES = True, False
STATIC, READINESS, OVERHEAD, C10K = TAKEN
REPORT = "httperf-1000.txt"

# Each row: the sample, whether the tables are made again, and corruptions planted together, each
# with the checks that must find it. No other check may find one.
PLANTED: list[tuple[str, bool, list[tuple[str, Callable[[Sample], object], set[str]]]]] = [
    (STATIC, RAW, [
        ("a record of another number", lambda s: s.record(lambda r: r.update(n=7)), {"DM-PLACE"}),
        ("a record of an earlier project",
         lambda s: s.record(lambda r: r.pop("schema_version")), {"DM-RECORD"}),
        ("another seed", lambda s: s.record(lambda r: r.update(seed=7)), {"DM-SEED"}),
        ("more load than time",
         lambda s: s.record(lambda r: r.update(wall_us=r["offering_us"] - 1)), {"DM-TIMES"}),
        ("a trial of another toolchain",
         lambda s: s.record(lambda r: r["tools"]["server"].update(cc="gcc-4.4 4.4.5")),
         {"DM-TOOLS"}),
        ("uncommitted changes",
         lambda s: s.record(lambda r: r["machine"].update(commit="4d4e3c11478e-dirty")),
         {"DM-COMMIT"}),
        ("another version of the server",
         lambda s: s.record(lambda r: r.update(version="null 0.0.1")), {"DM-SERVER"}),
        ("other CPUs", lambda s: s.record(lambda r: r["cpus"].update(client=[0])), {"DM-CPUS"}),
        ("fewer descriptors", lambda s: s.record(lambda r: r.update(descriptors=1024)),
         {"DM-DESCRIPTORS"}),
        ("a governor that saves power",
         lambda s: s.record(lambda r: r["hosts"]["server"]["processor"].update(
             governors=["powersave"])), {"DM-FREQUENCY"}),
        ("a kernel setting not in force",
         lambda s: s.record(
             lambda r: r["sysctl"]["server"].update({"net.ipv4.tcp_syncookies": "0"})),
         {"DM-SYSCTL"}),
        ("a check that failed",
         lambda s: s.record(lambda r: check_of("the file")(r).update(ok=False)),
         {"DM-CONFORMANCE"}),
        ("another load", lambda s: s.record(lambda r: r["spec"]["load"].update(timeout_s=1)),
         {"DM-SPEC"}),
        ("a client that failed",
         lambda s: s.record(point(0, client_state="signal SIGKILL")), {"DM-CLIENT"}),
        ("an outcome that hides a failure",
         lambda s: s.record(point(4, server_state="died: signal SIGKILL")), {"DM-OUTCOME"}),
        ("a start that is hidden", lambda s: s.record(point(2, fresh_start=True)), {"DM-FRESH"}),
        ("a flag lost", lambda s: s.record(lambda r: r["points"][0].update(
            command=re.sub(r" --timeout=\S+", "", r["points"][0]["command"]))), {"DM-COMMAND"}),
        ("a home in a log",
         lambda s: rewrite(s, "server.log", r"\Z", "open /home" "/ada/x.erl\n"), {"DM-PRIVATE"}),
        ("a server on other CPUs than said",
         lambda s: rewrite(s, "server.log", "taskset --cpu-list 0", "taskset --cpu-list 1"),
         {"DM-STARTED"}),
        ("a wrong backlog in the kernel",
         lambda s: sampled(s, lambda t: t.with_columns(accept_queue_limit=pl.lit(100))),
         {"DM-BACKLOG"}),
        ("a noisy neighbour on the machine",
         lambda s: sampled(s, growing("cpu_idle_us", -0.5)), {"DM-NEIGHBOUR"}),
        ("keep-alive off at the server",
         lambda s: rewrite(s, REPORT, r"^(Connection length .*: )10\.000", r"\g<1>1.000"),
         {"DM-KEEP-ALIVE"}),
        ("shorter bodies under load",
         lambda s: rewrite(s, REPORT, r"content 26\.0", "content 20.0"), {"DM-BODY"}),
    ]),
    (STATIC, RAW, [
        ("steps that do not add up",
         lambda s: s.record(lambda r: r.update(steps_us={"offering": 1})), {"DM-TIMES"}),
        ("no commit", lambda s: s.record(
            lambda r: r["machine"].update(commit=None, commit_unknown="git is not installed")),
         {"DM-COMMIT"}),
        ("a tool that is not named",
         lambda s: s.record(lambda r: r["tools"]["harness"].pop("httperf")), {"DM-TOOLS"}),
        ("other sources of the server",
         lambda s: s.record(lambda r: r["spec"].update(server_sha256="0" * 64)),
         {"DM-SERVER", "DM-SPEC"}),
        ("bbr at one end of one trial", one_other_algorithm, {"DM-SYSCTL"}),
        ("a noisy neighbour on the host",
         lambda s: sampled(s, growing("cpu_steal_us", 0.8)), {"DM-STEAL"}),
        ("a truncated report", lambda s: cut(s, REPORT), {"DM-WHOLE"}),
        ("keep-alive off in the kernel's count",
         lambda s: sampled(s, growing("client_active_opens", 0.01)), {"DM-COUNTERS"}),
    ]),
    (STATIC, RAW, [
        ("a log copied from another trial",
         lambda s: shutil.copy(s.trial / REPORT, s.trial.with_name("2") / REPORT), {"DM-TWICE"}),
        ("a rate left out", lambda s: (
            s.record(lambda r: r["points"].pop()), (s.trial / "httperf-80000.txt").unlink()),
         {"DM-SPEC"}),
    ]),
    (STATIC, RAW, [("a trial too many", lambda s: (
        s.record(lambda r: r.update(n=4)), s.trial.rename(s.trial.with_name("4"))),
        {"DM-UNPLANNED", "DM-MISSING"})]),
    (STATIC, RAW, [
        ("a truncated archive", half_packed, {"DM-ARCHIVE", "DM-MISSING", "DM-TABLES"})]),
    (STATIC, TABLES, [("the last bit of a float", lambda s: frame(
        s, "points", lambda t: t.with_columns(pl.col("reply_rate_avg_rps") * (1 + 2**-52))),
        {"DM-TABLES"})]),
    (READINESS, TABLES, [
        ("a row lost", lambda s: frame(s, "times", lambda t: t.slice(1)), {"DM-TABLES"})]),
    (READINESS, RAW, [
        ("folders swapped", lambda s: swap(s, relabel=False), {"DM-SPEC", "DM-STARTED"})]),
    (READINESS, RAW, [("folders and labels swapped", lambda s: swap(s, relabel=True),
                       {"DM-READINESS", "DM-STARTED"})]),
    (READINESS, RAW, [
        ("another kernel",
         lambda s: s.record(lambda r: r["machine"].update(kernel="2.6.32")), {"DM-MACHINE"}),
        ("a wrong readiness",
         lambda s: s.record(lambda r: check_of("waits with")(r).update(name="waits with select")),
         {"DM-READINESS"}),
    ]),
    (OVERHEAD, RAW, [
        ("an open loop that was closed",
         lambda s: rewrite(s, "roundtrip-1000.txt", "^loop: open", "loop: closed"), {"DM-COMMAND"}),
        ("an echo cut short",
         lambda s: rewrite(s, "roundtrip-1000.txt", r"^reply_bytes: \d+", "reply_bytes: 3"),
         {"DM-COUNTERS"}),
    ]),
    (C10K, TABLES, [("a truncated histogram", lambda s: cut(s, "wsload-10000.parquet"),
                     {"DM-RAW", "DM-TABLES"})]),
    (C10K, RAW, [
        ("messages at another pacing", one_other_pacing, {"DM-PACING"}),
        ("wrong echoes", wrong_echoes, {"DM-ANSWERS"}),
    ]),
]  # fmt: skip


def test_the_samples_are_sound(samples):
    for experiment, sample in samples.items():
        found = sample.report()
        assert broken(found) == {}, experiment
        assert found.status == PASSED and found.trials == len(sample.files) > 2


@pytest.mark.parametrize(
    ("experiment", "again", "faults"), PLANTED, ids=[faults[0][0] for *_, faults in PLANTED]
)
def test_planted_corruptions_are_rejected(samples, tmp_path, experiment, again, faults):
    sample = samples[experiment].copy(tmp_path / MINIATURE.name)
    expected = []
    for _, spoil, checks in faults:
        spoil(sample)
        expected += checks
    assert len(set(expected)) == len(expected)
    if again:
        sample.tidy()
    found = sample.report()
    assert broken(found).keys() == set(expected), broken(found)
    assert found.status == REJECTED


def test_each_check_rejects_a_corruption():
    """Except DM-LAW and DM-WRONG, which warn, and four that have tests of their own."""
    folder = ROOT / "deathmatch" / "data" / "strict"
    source = "".join(file.read_text() for file in folder.glob("*.py"))
    named = set(re.findall('"(DM-[A-Z-]+)"', source))
    planted = {name for *_, faults in PLANTED for *_, checks in faults for name in checks}
    others = {"DM-CHECKSUMS", "DM-INTERLEAVED", "DM-LAW", "DM-SEARCH", "DM-SITTING", "DM-WRONG"}
    assert named - planted == others


def test_a_file_that_changed_since_its_checksum_was_made(samples, tmp_path):
    sample = samples["overhead"].copy(tmp_path / MINIATURE.name)
    there = sorted(path for path in sample.folder.rglob("*") if path.is_file())
    names = [str(path.relative_to(sample.folder)) for path in there]
    words = ["sha256sum", "--", *names]
    made = subprocess.run(words, cwd=sample.folder, capture_output=True, text=True, check=True)
    (sample.folder / dataset_checks.CHECKSUMS).write_text(made.stdout)
    assert broken(sample.report()) == {}
    log = sample.trial / "server.log"
    log.write_text(log.read_text() + "\n")
    found = broken(sample.report())
    assert found.keys() == {"DM-CHECKSUMS"} and len(found["DM-CHECKSUMS"]) == 1
    assert "its checksum differs" in found["DM-CHECKSUMS"][0]


@pytest.mark.parametrize(
    ("outcome", "wrong_answers", "accused"),
    [("measured, with failures", 1, 0), ("measured, with failures", 0, 1), ("measured", 0, 0)],
)
def test_wrong_answers_alone_are_failures(outcome, wrong_answers, accused):
    point = {"server_state": "ran", "wrong_answers": wrong_answers}
    record = {"spec": {"client": "httperf"}, "outcome": outcome, "reason": "", "points": [point]}
    trial = Trial("data/mine/static/x/default/1", Path(), record)
    assert len(list(trial_checks.outcome(trial))) == accused


def test_tables_without_raw_logs_could_not_be_checked(samples, tmp_path):
    """Their status is not that of a rejection."""
    sample = samples["overhead"].copy(tmp_path / MINIATURE.name)
    for folder in {file.parents[2] for file in sample.files}:
        shutil.rmtree(folder)
    found = sample.report(files.dataset(MINIATURE.name))
    assert found.status == UNCHECKED != REJECTED
    assert [one.check for one in found.findings if one.severity == "unchecked"] == ["DM-RAW"]
    assert "no table could be made again" in found.text()


def test_a_waiver_is_reported_with_its_reason(samples, tmp_path):
    sample = samples["overhead"].copy(tmp_path / MINIATURE.name)
    sample.record(lambda r: r["machine"].update(commit="4d4e3c11478e-dirty"))
    sample.tidy()
    reason = "it was measured while the method was being corrected"
    dataset = files.dataset(MINIATURE.name).model_copy(update={"waives": {"DM-COMMIT": reason}})
    found = sample.report(dataset)
    assert found.status == PASSED
    said = found.text()
    assert "waived: DM-COMMIT" in said and f"waived: {reason}" in said and "1 waived" in said
    (told,) = [one for one in found.as_json()["findings"] if one["check"] == "DM-COMMIT"]
    assert told["waived"] == reason and told["verdict"] == "waived"
