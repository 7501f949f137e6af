"""The strict check rejects each planted corruption by its own rule, and sound trials by none."""

import dataclasses
import json
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from conftest import ROOT
from strict_sample import Sample, broken, unpack

from deathmatch.checks.report import PASSED, REJECTED, UNCHECKED
from deathmatch.data import archive, checksums, inventory
from deathmatch.data.strict import evidence, load_rules, record_rules, rules, table_rules
from deathmatch.data.strict.measured import Measured
from deathmatch.errors import UserError
from deathmatch.hosts import network_settings
from deathmatch.plan import files
from deathmatch.plan.trial import conformance_key

HTTP = "static/nginx/configuration=tuned,backlog=1024,schedulers=one,readiness=epoll"
# One trial of each is enough of what is large; a label can only be swapped between two variants.
TAKEN = {
    "static": r"null/.*",
    "readiness": r"c-readiness/readiness=(epoll|poll),idle_connections=500,.*",
    "overhead": r"otp-echo/layer=echo,schedulers=one,.*",
    "c10k": r"ws-null/.*environment=ec2-like,.*",
}


@pytest.fixture(scope="module")
def samples(tmp_path_factory) -> dict[str, Sample]:
    """A small dataset of each kind of load, sound."""
    made = {}
    for experiment, pattern in TAKEN.items():
        folder = tmp_path_factory.mktemp(experiment) / "reference"
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


def short_form(sample: Sample) -> None:
    """The first trial has a short form, and the one that it names for the full form has none."""

    def shorten(record: dict) -> None:
        without("the file")(record)
        record["full_conformance"] = {"trial": record["n"] + 1, "key": conformance_key(record)}

    sample.record(shorten)


def without(start: str) -> Callable[[dict], object]:
    return lambda r: r["conformance"].remove(check_of(start)(r))


def packed(sample: Sample, damage: Callable[[Path], object]) -> None:
    """Pack its raw logs, as they were, and damage the archive or a folder."""
    folder = sample.folder / sample.experiment
    made = archive._pack(folder, sorted(file.parent for file in sample.files))
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

# What is planted, in which sample, whether the tables are made again after it, and the rules that
# must see it: those alone.
PLANTED: list[tuple[str, str, bool, Callable[[Sample], object], set[str]]] = [
    ("a value edited", STATIC, TABLES,
     lambda s: frame(s, "points", first("connection_time_median_us", lambda v: v - 1)),
     {"DM-VALUES"}),
    ("the last bit of a float", STATIC, TABLES,
     lambda s: frame(s, "points", first("reply_rate_avg_rps", lambda v: math.nextafter(v, 0))),
     {"DM-VALUES"}),
    ("a value made null", STATIC, TABLES,
     lambda s: frame(s, "points", first("errors_total", lambda v: None)), {"DM-VALUES"}),
    ("a count of a histogram edited", OVERHEAD, TABLES,
     lambda s: frame(s, "times", first("count", lambda v: v + 1)), {"DM-VALUES"}),
    ("a verdict on the client edited", C10K, TABLES,
     lambda s: frame(s, "points", first("client_limited", lambda v: not v)), {"DM-VALUES"}),
    ("the limit of a point edited", STATIC, TABLES,
     lambda s: frame(s, "points", first("limit", lambda v: "testbed")), {"DM-VALUES"}),
    ("a row doubled", STATIC, TABLES,
     lambda s: frame(s, "points", lambda t: pl.concat([t, t.head(1)])), {"DM-ROWS"}),
    ("a row lost", READINESS, TABLES, lambda s: frame(s, "times", lambda t: t.slice(1)),
     {"DM-ROWS"}),
    ("rows of a trial without raw logs", OVERHEAD, TABLES,
     lambda s: frame(s, "samples", lambda t: pl.concat(
         [t, t.filter(n=1).with_columns(n=pl.lit(9, pl.Int64))])), {"DM-ROWS"}),
    ("labels swapped in a table", READINESS, TABLES,
     lambda s: frame(s, "points", lambda t: t.with_columns(pl.col("variant").reverse())),
     {"DM-VALUES"}),
    ("a table gone", STATIC, TABLES, lambda s: s.table("seconds").unlink(), {"DM-TABLES"}),
    ("a table truncated", STATIC, TABLES,
     lambda s: s.table("times").write_bytes(s.table("times").read_bytes()[:500]), {"DM-TABLES"}),
    ("a column too many", STATIC, TABLES,
     lambda s: frame(s, "points", lambda t: t.with_columns(more=1)), {"DM-TABLES"}),
    ("a record truncated", STATIC, TABLES, lambda s: cut(s, "trial.json"), {"DM-JSON"}),
    ("a key of a record lost", STATIC, TABLES, lambda s: s.record(lambda r: r.pop("outcome")),
     {"DM-RECORD"}),
    ("a record of a later project", STATIC, TABLES,
     lambda s: s.record(lambda r: r.update(schema_version=99)), {"DM-RECORD"}),
    ("a record of an earlier project", STATIC, RAW,
     lambda s: s.record(lambda r: r.pop("schema_version")), {"DM-SCHEMA"}),
    ("folders swapped", READINESS, RAW, lambda s: swap(s, relabel=False),
     {"DM-PLACE", "DM-SPEC", "DM-SAME-SPEC", "DM-STARTED"}),
    ("folders and labels swapped", READINESS, RAW, lambda s: swap(s, relabel=True),
     {"DM-READINESS", "DM-STARTED"}),
    ("a trial copied as another", STATIC, RAW, copied, {"DM-TWICE", "DM-OVERLAP"}),
    ("a log copied from another trial", STATIC, RAW,
     lambda s: shutil.copy(s.trial / REPORT, s.trial.with_name("2") / REPORT), {"DM-TWICE"}),
    ("an outcome that hides a failure", STATIC, RAW,
     lambda s: s.record(point(4, server_state="died: signal SIGKILL")), {"DM-OUTCOME"}),
    ("a truncated report", STATIC, RAW, lambda s: cut(s, REPORT), {"DM-WHOLE"}),
    ("a truncated summary", C10K, RAW, lambda s: cut(s, "wsload-10000.txt"), {"DM-WHOLE"}),
    ("a truncated histogram", C10K, TABLES, lambda s: cut(s, "wsload-10000.parquet"),
     {"DM-RAW", "DM-WHOLE"}),
    ("a log gone", STATIC, RAW, lambda s: (s.trial / REPORT).unlink(), {"DM-LOGS"}),
    ("a log of no point", STATIC, RAW,
     lambda s: shutil.copy(s.trial / REPORT, s.trial / "httperf-7.txt"), {"DM-LOGS"}),
    ("samples of a rate lost", STATIC, RAW,
     lambda s: sampled(s, lambda t: t.filter(pl.col("offered_rate_rps").ne_missing(2000))),
     {"DM-SAMPLES", "DM-COUNTERS"}),
    ("samples out of order", STATIC, TABLES, lambda s: sampled(s, lambda t: pl.concat(
        [t.head(2).reverse(), t.slice(2)])), {"DM-RAW"}),
    ("more load than time", STATIC, RAW,
     lambda s: s.record(lambda r: r.update(wall_us=r["offering_us"] - 1)), {"DM-TIMES"}),
    ("steps that do not add up", STATIC, RAW,
     lambda s: s.record(lambda r: r.update(steps_us={"offering": 1})), {"DM-TIMES"}),
    ("a rate cut short", STATIC, RAW, lambda s: s.record(lambda r: r["points"][1].update(
        began_us=r["points"][0]["began_us"] + 1000)), {"DM-TIMES"}),
    ("a trial of another toolchain", STATIC, RAW,
     lambda s: s.record(lambda r: r["tools"]["server"].update(cc="gcc-4.4 4.4.5")), {"DM-TOOLS"}),
    ("another kernel", STATIC, RAW,
     lambda s: s.record(lambda r: r["tools"]["harness"].update(kernel="2.6.32")), {"DM-TOOLS"}),
    ("a tool that is not named", STATIC, RAW,
     lambda s: s.record(lambda r: r["tools"]["harness"].pop("httperf")), {"DM-TOOLS-NAMED"}),
    ("another machine", STATIC, RAW, lambda s: s.record(lambda r: r["machine"].update(cpu="Z80")),
     {"DM-MACHINE"}),
    ("a machine that is not named", STATIC, RAW,
     lambda s: s.record(lambda r: r["machine"].update(cpu="")),
     {"DM-MACHINE-NAMED", "DM-MACHINE"}),
    ("changes beside the commit", STATIC, RAW,
     lambda s: s.record(lambda r: r["machine"].update(commit="4d4e3c11478e-dirty")),
     {"DM-COMMIT"}),
    ("no commit", STATIC, RAW, lambda s: s.record(
        lambda r: r["machine"].update(commit=None, commit_unknown="git is not installed")),
     {"DM-COMMIT"}),
    ("other sources of the server", STATIC, RAW,
     lambda s: s.record(lambda r: r["spec"].update(server_sha256="0" * 64)),
     {"DM-SERVER", "DM-SPEC", "DM-SAME-SPEC"}),
    ("another version of the server", STATIC, RAW,
     lambda s: s.record(lambda r: r.update(version="null 0.0.1")), {"DM-SERVER"}),
    ("a trial missing", STATIC, RAW, lambda s: shutil.rmtree(s.trial),
     {"DM-MISSING", "DM-REPETITIONS"}),
    ("a trial too many", STATIC, RAW, lambda s: (
        s.record(lambda r: r.update(n=4)), s.trial.rename(s.trial.with_name("4"))),
     {"DM-UNPLANNED", "DM-MISSING", "DM-REPETITIONS"}),
    ("another load", STATIC, RAW,
     lambda s: s.record(lambda r: r["spec"]["load"].update(timeout_s=1)),
     {"DM-SPEC", "DM-SAME-SPEC", "DM-COMMAND", "DM-ECHOED-COMMAND"}),
    ("a shorter time", STATIC, RAW, lambda s: s.record(lambda r: r["spec"].update(duration_s=1)),
     {"DM-SPEC", "DM-SAME-SPEC", "DM-COMMAND", "DM-ECHOED-COMMAND"}),
    ("a rate left out", STATIC, RAW, lambda s: (
        s.record(lambda r: r["points"].pop()), (s.trial / "httperf-80000.txt").unlink()),
     {"DM-RATES"}),
    ("a start that is hidden", STATIC, RAW, lambda s: s.record(point(2, fresh_start=True)),
     {"DM-FRESH"}),
    ("another seed", STATIC, RAW, lambda s: s.record(lambda r: r.update(seed=7)), {"DM-SEED"}),
    ("two trials at one time", STATIC, RAW, lambda s: s.record(
        lambda r: r.update(wall_us=10**11)), {"DM-OVERLAP"}),
    ("a flag lost", STATIC, RAW, lambda s: s.record(lambda r: r["points"][0].update(
        command=re.sub(r" --timeout=\S+", "", r["points"][0]["command"]))), {"DM-COMMAND"}),
    ("another rate than recorded", STATIC, RAW,
     lambda s: rewrite(s, REPORT, r" --rate=100 ", " --rate=50 "), {"DM-ECHOED-COMMAND"}),
    ("keep-alive off by a flag", STATIC, RAW,
     lambda s: rewrite(s, REPORT, "--num-calls=10", "--num-calls=1"), {"DM-ECHOED-COMMAND"}),
    ("keep-alive off at the server", STATIC, RAW,
     lambda s: rewrite(s, REPORT, r"^(Connection length .*: )10\.000", r"\g<1>1.000"),
     {"DM-KEEP-ALIVE"}),
    ("keep-alive off in the kernel's count", STATIC, RAW,
     lambda s: sampled(s, growing("client_active_opens", 0.01)),
     {"DM-COUNTERS", "DM-KEEP-ALIVE"}),
    ("keep-alive off in roundtrip", OVERHEAD, RAW,
     lambda s: rewrite(s, "roundtrip-1000.txt", "^connects: 4$", "connects: 2000"),
     {"DM-COUNTERS", "DM-KEEP-ALIVE"}),
    ("messages of another size", C10K, RAW,
     lambda s: rewrite(s, "wsload-10000.txt", '"size_bytes": 33', '"size_bytes": 3'),
     {"DM-ECHOED-COMMAND"}),
    ("an open loop that was closed", OVERHEAD, RAW,
     lambda s: rewrite(s, "roundtrip-1000.txt", "^loop: open", "loop: closed"),
     {"DM-ECHOED-COMMAND"}),
    ("echoes that were not compared", C10K, RAW,
     lambda s: rewrite(s, "wsload-10000.txt", '"mismatched_count": 0', '"mismatched_count": null'),
     {"DM-WHOLE"}),
    ("an echo cut short", OVERHEAD, RAW,
     lambda s: rewrite(s, "roundtrip-1000.txt", r"^reply_bytes: \d+", "reply_bytes: 3"),
     {"DM-COMPARED", "DM-COUNTERS"}),
    ("messages at another pacing", C10K, RAW, one_other_pacing, {"DM-PACING"}),
    ("wrong echoes", C10K, RAW,
     lambda s: rewrite(s, "wsload-10000.txt", '"mismatched_count": 0', '"mismatched_count": 5'),
     {"DM-ANSWERS"}),
    ("shorter bodies under load", STATIC, RAW,
     lambda s: rewrite(s, REPORT, r"content 26\.0", "content 20.0"), {"DM-BODY"}),
    ("a client that failed", STATIC, RAW,
     lambda s: s.record(point(0, client_state="signal SIGKILL")), {"DM-CLIENT"}),
    ("more replies than requests", STATIC, RAW,
     lambda s: rewrite(s, REPORT, r"replies 2000 ", "replies 2001 "), {"DM-WHOLE"}),
    ("a check left out", STATIC, RAW, lambda s: s.record(without("the file")),
     {"DM-CONFORMANCE"}),
    ("bbr at one end of one trial", STATIC, RAW, one_other_algorithm, {"DM-NETWORK"}),
    ("a short form without the full one", STATIC, RAW, short_form, {"DM-CONFORMANCE-FULL"}),
    ("a full form of another kernel", STATIC, RAW, lambda s: s.record(
        lambda r: r.update(full_conformance={"trial": r["n"], "key": 64 * "0"})),
     {"DM-CONFORMANCE-FULL"}),
    ("a check that failed", STATIC, RAW,
     lambda s: s.record(lambda r: check_of("the file")(r).update(ok=False)), {"DM-CONFORMANCE"}),
    ("a wrong backlog in the kernel", STATIC, RAW,
     lambda s: sampled(s, lambda t: t.with_columns(accept_queue_limit=pl.lit(100))),
     {"DM-BACKLOG"}),
    ("a backlog that was not checked", STATIC, RAW, lambda s: s.record(without("listen backlog")),
     {"DM-BACKLOG"}),
    ("a wrong readiness", READINESS, RAW,
     lambda s: s.record(lambda r: check_of("waits with")(r).update(name="waits with select")),
     {"DM-READINESS"}),
    ("idle connections lost", READINESS, RAW, lambda s: s.record(point(0, idle_held=499)),
     {"DM-COUNTERS", "DM-IDLE"}),
    ("a kernel setting not in force", STATIC, RAW,
     lambda s: s.record(kernel(**{"net.ipv4.tcp_syncookies": "0"})), {"DM-SYSCTL"}),
    ("other CPUs", STATIC, RAW, lambda s: s.record(lambda r: r["cpus"].update(client=[0])),
     {"DM-CPUS"}),
    ("a server on other CPUs than said", STATIC, RAW,
     lambda s: rewrite(s, "server.log", "taskset --cpu-list 0", "taskset --cpu-list 1"),
     {"DM-CPUS", "DM-STARTED"}),
    ("another command of the server", STATIC, RAW,
     lambda s: rewrite(s, "server.log", r"\A(\$ .*)$", r"\1 --fast"), {"DM-STARTED"}),
    ("a process that was left", STATIC, RAW,
     lambda s: s.record(lambda r: r["stops"][0].update(left=[42])), {"DM-STOPPED"}),
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
     lambda s: sampled(s, growing("cpu_user_us", 1.2)), {"DM-NEIGHBOUR"}),
    ("fewer descriptors", STATIC, RAW, lambda s: s.record(lambda r: r.update(descriptors=1024)),
     {"DM-DESCRIPTORS"}),
    ("a home in a log", STATIC, RAW,
     lambda s: rewrite(s, "server.log", r"\Z", "open /home" "/ada/x.erl\n"), {"DM-PRIVATE"}),
    ("an archive of other trials", STATIC, RAW,
     lambda s: packed(s, lambda _: (s.trial / "server.log").write_text(
         (s.trial / "server.log").read_text() + "more\n")), {"DM-ARCHIVE"}),
    ("an archive that is truncated", STATIC, RAW,
     lambda s: packed(s, lambda file: file.write_bytes(file.read_bytes()[:9999])),
     {"DM-ARCHIVE"}),
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
def test_a_planted_corruption_is_seen_by_its_rules(
    samples, tmp_path, experiment, again, spoil, expected
):
    sample = samples[experiment].copy(tmp_path / "reference")
    spoil(sample)
    if again:
        sample.tidy()
    found = sample.report()
    assert broken(found).keys() == expected, broken(found)
    rejected = any(rule.id in expected and rule.severity == "reject" for rule in rules.RULES)
    assert found.status == (REJECTED if rejected else PASSED)


def test_each_rule_that_rejects_or_warns_has_a_corruption_or_a_test_of_its_own():
    planted = set().union(*(each[4] for each in PLANTED))
    others = {
        "DM-CACHED", "DM-CHECKSUMS", "DM-INTERLEAVED", "DM-LAW", "DM-OVERLOAD-TIME",
        "DM-SEARCH", "DM-SOME-NEIGHBOUR", "DM-SOME-STEAL", "DM-USABLE",
    }  # fmt: skip
    asked = {rule.id for rule in rules.RULES if rule.severity != "note"}
    assert asked == planted | others and not planted & others
    assert len(PLANTED) >= 30


def test_a_file_that_changed_since_its_checksum_was_made(samples, tmp_path):
    sample = samples["overhead"].copy(tmp_path / "reference")
    (sample.folder / checksums.NAME).write_text(checksums.text(sample.folder))
    assert broken(sample.report()) == {}
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet", checksums.NAME], cwd=sample.folder
    )
    assert done.returncode == 0
    log = sample.trial / "server.log"
    log.write_text(log.read_text() + "\n")
    (sample.folder / "more.txt").write_text("more\n")
    found = broken(sample.report())
    assert found.keys() == {"DM-CHECKSUMS"} and len(found["DM-CHECKSUMS"]) == 2
    assert any("its checksum is another" in one for one in found["DM-CHECKSUMS"])


@pytest.mark.parametrize(
    ("column", "by", "seen"),
    [("cpu_steal_us", 0.2, "DM-SOME-STEAL"), ("cpu_user_us", 0.3, "DM-SOME-NEIGHBOUR")],
)
def test_what_takes_a_part_of_the_cpu_is_told(samples, tmp_path, column, by, seen):
    sample = samples["static"].copy(tmp_path / "reference")
    sampled(sample, growing(column, by))
    sample.tidy()
    found = sample.report()
    assert broken(found).keys() == {seen} and found.status == PASSED


@pytest.mark.parametrize(
    ("outcome", "wrong_answers", "accused"),
    [("measured, with failures", 1, 0), ("measured, with failures", 0, 1), ("measured", 0, 0)],
)
def test_wrong_answers_alone_are_failures(outcome, wrong_answers, accused):
    point = {"server_state": "ran", "wrong_answers": wrong_answers}
    record = {"spec": {"client": "httperf"}, "outcome": outcome, "points": [point]}
    trial = Measured("data/mine/static/x/default/1", Path(), record)
    assert len(list(record_rules.outcome_is_that_of_its_points.look(trial))) == accused


def test_a_broken_law_is_told_and_does_not_reject(samples):
    """Where the tables have the column; that it is right, DM-VALUES sees."""
    sample = samples["overhead"]
    with evidence.gather(sample.folder, files.dataset("reference")) as gathered:
        points = gathered.tables["overhead", "points"]
        marks = [["LAW-STEADY", "LAW-CPU-MODES"], *[[]] * (len(points) - 1)]
        column = pl.Series(table_rules.MARKS, marks, pl.List(pl.String))
        tables = {("overhead", "points"): points.with_columns(column)}
        looked = dataclasses.replace(gathered, tables=tables)
        (seen,) = table_rules.laws_are_obeyed.look(looked)
    assert seen.what.startswith("LAW-STEADY is broken at ")
    assert table_rules.laws_are_obeyed.severity == "warn"


def test_points_that_show_no_server_are_counted(samples):
    sample = samples["static"]
    with evidence.gather(sample.folder, files.dataset("reference")) as gathered:
        points = gathered.tables["static", "points"]
        for limited, said in ((len(points) // 2, []), (len(points) - 1, [len(points) - 1])):
            marks = [True] * limited + [False] * (len(points) - limited)
            column = pl.Series("client_limited", marks)
            tables = {("static", "points"): points.with_columns(column).drop("limit", strict=False)}
            looked = dataclasses.replace(gathered, tables=tables)
            seen = list(table_rules.most_points_show_their_server.look(looked))
            assert [int(finding.what.partition(" of ")[0]) for finding in seen] == said
            report = rules.ask(looked, [])
            assert f" {limited} of {len(points)} points unusable" in report.whole_text()
            assert report.as_json()["unusable_points"] == limited
    assert table_rules.most_points_show_their_server in rules.QUICK


@pytest.mark.parametrize(
    ("varied_ns", "seen"), [((110, 120, 130), True), ((104, 104, 104), False), ((110, 120), False)]
)
def test_a_server_that_gains_by_being_asked_the_same_is_told(varied_ns, seen):
    """Nothing in data/reference varies what is asked for: the trials are made up."""

    def trial(values: str, n: int, cpu_ns: int) -> Measured:
        spec = {"client": "httperf", "factors": {"backlog": 128, "values": values}, "load": {}}
        folder = f"data/mine/dynamic/node/values={values}/{n}"
        rows = [{"server_cpu_ns": 1000 * cpu_ns, "replies": 1000}]
        return Measured(folder, Path(), {"spec": spec}, rows=rows)

    trials = [trial("repeated", n, ns) for n, ns in enumerate((99, 100, 101), 1)]
    trials += [trial("varied", n, ns) for n, ns in enumerate(varied_ns, 1)]
    looked = SimpleNamespace(loaded=trials, named="data/mine")
    found = list(load_rules.repeating_brings_nothing.look(looked))
    assert [one.where for one in found] == (["data/mine/dynamic/node"] if seen else [])
    assert list(load_rules.payloads_vary.look(looked)) == []
    (alone,) = load_rules.payloads_vary.look(SimpleNamespace(loaded=trials[:3], named="data/mine"))
    assert alone.what == "httperf repeats one request"


def test_two_hundred_sound_trials_are_rejected_by_no_rule(tmp_path):
    """Trials as data/reference has them, of three kinds of load and of servers without load."""
    count = 0
    # The logs of c10k are the largest.
    wanted = {"readiness": "", "overhead": "", "storage": "", "c10k": "ws-null/"}
    for experiment, server in wanted.items():
        folder = tmp_path / experiment / "reference"
        unpack(experiment, lambda name, server=server: name.startswith(server), folder)
        sample = Sample(folder, experiment)
        sample.tidy()
        found = sample.report(files.dataset("reference"))
        assert found.by_verdict["reject"] == [] == found.by_verdict["unchecked"]
        assert found.status == PASSED
        count += found.trials
    assert count >= 200


def test_tables_without_raw_logs_could_not_be_checked(samples, tmp_path):
    """That is another status than a rejection."""
    sample = samples["overhead"].copy(tmp_path / "reference")
    for folder in {file.parents[2] for file in sample.files}:
        shutil.rmtree(folder)
    dataset = files.dataset("reference")
    found = sample.report(dataset)
    assert found.status == UNCHECKED != REJECTED
    (result,) = found.by_verdict["unchecked"]
    assert result.rule.id == "DM-RAW" and result.unknown[0].why in found.whole_text()


def test_a_waiver_is_told_with_its_reason(samples, tmp_path):
    sample = samples["overhead"].copy(tmp_path / "reference")
    sample.record(lambda r: r["machine"].update(commit="4d4e3c11478e-dirty"))
    sample.tidy()
    reason = "it was measured while the method was being corrected"
    dataset = files.dataset("reference").model_copy(update={"waives": {"DM-COMMIT": reason}})
    found = sample.report(dataset)
    assert found.status == PASSED
    said = found.whole_text()
    assert "waived: DM-COMMIT" in said and f"waived: {reason}" in said and "1 waived" in said
    told = {rule["id"]: rule for rule in found.as_json()["rules"]}
    assert told["DM-COMMIT"]["waived"] == reason and told["DM-COMMIT"]["verdict"] == "waived"
    assert len(told["DM-COMMIT"]["found"]) == 1 and told["DM-JSON"]["verdict"] == "passed"
    unknown = dataset.model_copy(update={"waives": {"DM-COMMIST": reason}})
    with pytest.raises(UserError, match="there is no rule 'DM-COMMIST'"):
        sample.report(unknown)


def test_an_older_record_is_not_asked_what_it_could_not_say(samples, tmp_path):
    sample = samples["overhead"].copy(tmp_path / "reference")
    for file in sample.files:
        sample.record(lambda r: [r.pop(key) for key in ("schema_version", "seed")], file.parent)
    found = sample.report()
    assert broken(found) == {}
    (seed,) = [one for one in found.results if one.rule.id == "DM-SEED"]
    assert (seed.verdict, seed.older) == ("not asked", 5)


def test_each_rule_has_an_identifier_of_its_own_and_a_clause_of_the_method():
    names = [rule.id for rule in rules.RULES]
    assert len(set(names)) == len(names) and all(re.fullmatch(r"DM(-[A-Z]+)+", n) for n in names)
    method = (ROOT / "notebooks/00-method.md").read_text()
    for rule in rules.RULES:
        assert f"{{#{rule.clause}" in method, rule.id
        assert rule.statement.endswith(".") and rule.remedy
        assert rule.severity in ("reject", "warn", "note")
