"""The strict check rejects each corruption in PLANTED, and sound trials not at all.

Given up, because no table, figure or sentence reads what they change: a log of no point; a rate cut
short (`began_us`); another rate, a flag, or messages of another size in the line in which a report
repeats its command (the command that was run is compared, with that of the variant's other trials);
a check, or that of the backlog, left out of a record; a process that was left.
"""

import json
import math
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
# One trial of each is enough of what is large; a label can only be swapped between two variants.
TAKEN = {
    "static": r"null/.*",
    "readiness": r"c-readiness/readiness=(epoll|poll),idle_connections=500,.*",
    "overhead": r"otp-echo/layer=echo,schedulers=one,.*",
    "c10k": r"ws-null/.*environment=ec2-like,.*",
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


def first(column: str, value: Callable[[object], object]) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Return a change of a column's value in the first row."""

    def change(table: pl.DataFrame) -> pl.DataFrame:
        values = table[column].to_list()
        values[0] = value(values[0])
        return table.with_columns(pl.Series(column, values, table.schema[column]))

    return change


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


def copied(sample: Sample) -> None:
    """The first trial stands there as the second one."""
    second = sample.trial.with_name("2")
    shutil.rmtree(second)
    shutil.copytree(sample.trial, second)
    sample.record(lambda record: record.update(n=2), second)


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


def without(start: str) -> Callable[[dict], object]:
    return lambda r: r["conformance"].remove(check_of(start)(r))


def packed(sample: Sample, damage: Callable[[Path], object]) -> None:
    """Pack its raw logs, as they were, and damage the archive or a folder."""
    folder = sample.folder / sample.experiment
    made = archive.write(
        folder / archive.NAME, folder, sorted(file.parent for file in sample.files)
    )
    damage(made)


def earlier(record: dict) -> None:
    record["started_at"] = record["started_at"][:-2] + "0Z"


def point(index: int, **changed) -> Callable[[dict], object]:
    return lambda record: record["points"][index].update(changed)


def kernel(**changed: str) -> Callable[[dict], object]:
    return lambda record: record["sysctl"]["server"].update(changed)


RAW, TABLES = True, False
STATIC, READINESS, OVERHEAD, C10K = TAKEN
REPORT = "httperf-1000.txt"

# What is planted, in which sample, whether the tables are made again after it, and the checks that
# must see it: those alone.
PLANTED: list[tuple[str, str, bool, Callable[[Sample], object], set[str]]] = [
    ("a value edited", STATIC, TABLES,
     lambda s: frame(s, "points", first("connection_time_median_us", lambda v: v - 1)),
     {"DM-TABLES"}),
    ("the last bit of a float", STATIC, TABLES,
     lambda s: frame(s, "points", first("reply_rate_avg_rps", lambda v: math.nextafter(v, 0))),
     {"DM-TABLES"}),
    ("a row lost", READINESS, TABLES, lambda s: frame(s, "times", lambda t: t.slice(1)),
     {"DM-TABLES"}),
    ("a table gone", STATIC, TABLES, lambda s: s.table("seconds").unlink(), {"DM-TABLES"}),
    ("a table truncated", STATIC, TABLES,
     lambda s: s.table("times").write_bytes(s.table("times").read_bytes()[:500]), {"DM-TABLES"}),
    ("a record of a later project", STATIC, TABLES,
     lambda s: s.record(lambda r: r.update(schema_version=99)), {"DM-RECORD", "DM-TABLES"}),
    ("a record of an earlier project", STATIC, RAW,
     lambda s: s.record(lambda r: r.pop("schema_version")), {"DM-RECORD"}),
    ("folders swapped", READINESS, RAW, lambda s: swap(s, relabel=False),
     {"DM-SPEC", "DM-STARTED"}),
    ("folders and labels swapped", READINESS, RAW, lambda s: swap(s, relabel=True),
     {"DM-READINESS", "DM-STARTED"}),
    ("a record of another number", STATIC, RAW, lambda s: s.record(lambda r: r.update(n=7)),
     {"DM-PLACE"}),
    ("a trial copied as another", STATIC, RAW, copied, {"DM-TWICE"}),
    ("a log copied from another trial", STATIC, RAW,
     lambda s: shutil.copy(s.trial / REPORT, s.trial.with_name("2") / REPORT), {"DM-TWICE"}),
    ("an outcome that hides a failure", STATIC, RAW,
     lambda s: s.record(point(4, server_state="died: signal SIGKILL")), {"DM-OUTCOME"}),
    ("a truncated report", STATIC, RAW, lambda s: cut(s, REPORT), {"DM-WHOLE"}),
    ("a truncated histogram", C10K, TABLES, lambda s: cut(s, "wsload-10000.parquet"),
     {"DM-RAW", "DM-TABLES"}),
    ("a log gone", STATIC, RAW, lambda s: (s.trial / REPORT).unlink(), {"DM-WHOLE"}),
    ("samples of a rate lost", STATIC, RAW,
     lambda s: sampled(s, lambda t: t.filter(pl.col("offered_rate_rps").ne_missing(2000))),
     {"DM-COUNTERS"}),
    ("more load than time", STATIC, RAW,
     lambda s: s.record(lambda r: r.update(wall_us=r["offering_us"] - 1)), {"DM-TIMES"}),
    ("steps that do not add up", STATIC, RAW,
     lambda s: s.record(lambda r: r.update(steps_us={"offering": 1})), {"DM-TIMES"}),
    ("a trial of another toolchain", STATIC, RAW,
     lambda s: s.record(lambda r: r["tools"]["server"].update(cc="gcc-4.4 4.4.5")), {"DM-TOOLS"}),
    ("another kernel", READINESS, RAW,
     lambda s: s.record(lambda r: r["machine"].update(kernel="2.6.32")), {"DM-MACHINE"}),
    ("a tool that is not named", STATIC, RAW,
     lambda s: s.record(lambda r: r["tools"]["harness"].pop("httperf")), {"DM-TOOLS"}),
    ("a machine that is not named", READINESS, RAW,
     lambda s: s.record(lambda r: r["machine"].update(cpu="")),
     {"DM-MACHINE"}),
    ("changes beside the commit", STATIC, RAW,
     lambda s: s.record(lambda r: r["machine"].update(commit="4d4e3c11478e-dirty")),
     {"DM-COMMIT"}),
    ("no commit", STATIC, RAW, lambda s: s.record(
        lambda r: r["machine"].update(commit=None, commit_unknown="git is not installed")),
     {"DM-COMMIT"}),
    ("other sources of the server", STATIC, RAW,
     lambda s: s.record(lambda r: r["spec"].update(server_sha256="0" * 64)),
     {"DM-SERVER", "DM-SPEC"}),
    ("another version of the server", STATIC, RAW,
     lambda s: s.record(lambda r: r.update(version="null 0.0.1")), {"DM-SERVER"}),
    ("a trial missing", STATIC, RAW, lambda s: shutil.rmtree(s.trial),
     {"DM-MISSING"}),
    ("a trial too many", STATIC, RAW, lambda s: (
        s.record(lambda r: r.update(n=4)), s.trial.rename(s.trial.with_name("4"))),
     {"DM-UNPLANNED", "DM-MISSING"}),
    ("another load", STATIC, RAW,
     lambda s: s.record(lambda r: r["spec"]["load"].update(timeout_s=1)),
     {"DM-SPEC"}),
    ("a rate left out", STATIC, RAW, lambda s: (
        s.record(lambda r: r["points"].pop()), (s.trial / "httperf-80000.txt").unlink()),
     {"DM-SPEC"}),
    ("a start that is hidden", STATIC, RAW, lambda s: s.record(point(2, fresh_start=True)),
     {"DM-FRESH"}),
    ("another seed", STATIC, RAW, lambda s: s.record(lambda r: r.update(seed=7)), {"DM-SEED"}),
    ("a flag lost", STATIC, RAW, lambda s: s.record(lambda r: r["points"][0].update(
        command=re.sub(r" --timeout=\S+", "", r["points"][0]["command"]))), {"DM-COMMAND"}),
    ("keep-alive off at the server", STATIC, RAW,
     lambda s: rewrite(s, REPORT, r"^(Connection length .*: )10\.000", r"\g<1>1.000"),
     {"DM-KEEP-ALIVE"}),
    ("keep-alive off in the kernel's count", STATIC, RAW,
     lambda s: sampled(s, growing("client_active_opens", 0.01)),
     {"DM-COUNTERS"}),
    ("keep-alive off in roundtrip", OVERHEAD, RAW,
     lambda s: rewrite(s, "roundtrip-1000.txt", "^connects: 4$", "connects: 2000"),
     {"DM-COUNTERS"}),
    ("an open loop that was closed", OVERHEAD, RAW,
     lambda s: rewrite(s, "roundtrip-1000.txt", "^loop: open", "loop: closed"),
     {"DM-COMMAND"}),
    ("echoes that were not compared", C10K, RAW,
     lambda s: rewrite(s, "wsload-10000.txt", '"mismatched_count": 0', '"mismatched_count": null'),
     {"DM-WHOLE"}),
    ("an echo cut short", OVERHEAD, RAW,
     lambda s: rewrite(s, "roundtrip-1000.txt", r"^reply_bytes: \d+", "reply_bytes: 3"),
     {"DM-COUNTERS"}),
    ("messages at another pacing", C10K, RAW, one_other_pacing, {"DM-PACING"}),
    ("wrong echoes", C10K, RAW, wrong_echoes,
     {"DM-ANSWERS"}),
    ("shorter bodies under load", STATIC, RAW,
     lambda s: rewrite(s, REPORT, r"content 26\.0", "content 20.0"), {"DM-BODY"}),
    ("a client that failed", STATIC, RAW,
     lambda s: s.record(point(0, client_state="signal SIGKILL")), {"DM-CLIENT"}),
    ("more replies than requests", STATIC, RAW,
     lambda s: rewrite(s, REPORT, r"replies 2000 ", "replies 2001 "), {"DM-WHOLE"}),
    ("bbr at one end of one trial", STATIC, RAW, one_other_algorithm, {"DM-SYSCTL"}),
    ("a check that failed", STATIC, RAW,
     lambda s: s.record(lambda r: check_of("the file")(r).update(ok=False)), {"DM-CONFORMANCE"}),
    ("a wrong backlog in the kernel", STATIC, RAW,
     lambda s: sampled(s, lambda t: t.with_columns(accept_queue_limit=pl.lit(100))),
     {"DM-BACKLOG"}),
    ("a wrong readiness", READINESS, RAW,
     lambda s: s.record(lambda r: check_of("waits with")(r).update(name="waits with select")),
     {"DM-READINESS"}),
    ("idle connections lost", READINESS, RAW, lambda s: s.record(point(0, idle_held=499)),
     {"DM-COUNTERS"}),
    ("a kernel setting not in force", STATIC, RAW,
     lambda s: s.record(kernel(**{"net.ipv4.tcp_syncookies": "0"})), {"DM-SYSCTL"}),
    ("other CPUs", STATIC, RAW, lambda s: s.record(lambda r: r["cpus"].update(client=[0])),
     {"DM-CPUS"}),
    ("a server on other CPUs than said", STATIC, RAW,
     lambda s: rewrite(s, "server.log", "taskset --cpu-list 0", "taskset --cpu-list 1"),
     {"DM-STARTED"}),
    ("another command of the server", STATIC, RAW,
     lambda s: rewrite(s, "server.log", r"\A(\$ .*)$", r"\1 --fast"), {"DM-STARTED"}),
    ("a throttled CPU", STATIC, RAW, lambda s: s.record(
        lambda r: r.update(throttle={"cpu_quota_us": 40000, "cpu_period_us": 100000})),
     {"DM-THROTTLED"}),
    ("a throttle that was not in force", C10K, RAW,
     lambda s: [s.record(lambda r: r["throttle"].pop("cpu_quota_us"), f.parent)
                for f in s.files], {"DM-THROTTLED"}),
    ("a governor that saves power", STATIC, RAW,
     lambda s: s.record(lambda r: r["hosts"]["server"]["processor"].update(
         governors=["powersave"])), {"DM-FREQUENCY"}),
    ("a noisy neighbour on the host", STATIC, RAW,
     lambda s: sampled(s, growing("cpu_steal_us", 0.8)), {"DM-STEAL"}),
    ("a noisy neighbour on the machine", STATIC, RAW,
     lambda s: sampled(s, growing("cpu_idle_us", -0.5)), {"DM-NEIGHBOUR"}),
    ("fewer descriptors", STATIC, RAW, lambda s: s.record(lambda r: r.update(descriptors=1024)),
     {"DM-DESCRIPTORS"}),
    ("a home in a log", STATIC, RAW,
     lambda s: rewrite(s, "server.log", r"\Z", "open /home" "/ada/x.erl\n"), {"DM-PRIVATE"}),
    ("an archive that is truncated", STATIC, RAW,
     lambda s: packed(s, lambda file: file.write_bytes(file.read_bytes()[:9999])),
     {"DM-ARCHIVE", "DM-MISSING", "DM-TABLES"}),
]  # fmt: skip


def test_the_samples_are_sound(samples):
    for experiment, sample in samples.items():
        found = sample.report()
        assert broken(found) == {}, experiment
        assert found.status == PASSED and found.trials == len(sample.files) > 2


@pytest.mark.parametrize(
    ("experiment", "again", "spoil", "expected"), [p[1:] for p in PLANTED],
    ids=[p[0] for p in PLANTED],
)  # fmt: skip
def test_a_planted_corruption_is_rejected(samples, tmp_path, experiment, again, spoil, expected):
    sample = samples[experiment].copy(tmp_path / MINIATURE.name)
    spoil(sample)
    if again:
        sample.tidy()
    found = sample.report()
    assert broken(found).keys() == expected, broken(found)
    assert found.status == REJECTED


def test_each_check_rejects_a_corruption():
    """But for DM-LAW and DM-WRONG, which warn, and four that have tests of their own."""
    folder = ROOT / "deathmatch" / "data" / "strict"
    source = "".join(file.read_text() for file in folder.glob("*.py"))
    named = set(re.findall('"(DM-[A-Z-]+)"', source))
    planted = set().union(*(each[4] for each in PLANTED))
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
    assert "its checksum is another" in found["DM-CHECKSUMS"][0]


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
    """That is another status than a rejection."""
    sample = samples["overhead"].copy(tmp_path / MINIATURE.name)
    for folder in {file.parents[2] for file in sample.files}:
        shutil.rmtree(folder)
    found = sample.report(files.dataset(MINIATURE.name))
    assert found.status == UNCHECKED != REJECTED
    assert [one.check for one in found.findings if one.severity == "unchecked"] == ["DM-RAW"]
    assert "no table could be made again" in found.text()


def test_a_waiver_is_told_with_its_reason(samples, tmp_path):
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


def test_an_older_record_is_not_asked_what_it_could_not_say(samples, tmp_path):
    sample = samples["overhead"].copy(tmp_path / MINIATURE.name)
    for file in sample.files:
        sample.record(lambda r: [r.pop(key) for key in ("schema_version", "seed")], file.parent)
    assert broken(sample.report()) == {}
