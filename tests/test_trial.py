"""Servers that fail in every way: each failure is a recorded result, and no other trial is lost."""

import json
import re

import polars as pl
import psutil
import pytest
from conftest import AS_ROOT, Done, Tree, copy_tree
from servers.broken import FLOOD_BYTES

from deathmatch.load.generator import FIRST_WRONG
from deathmatch.plan import files
from deathmatch.quantities.quantity import WRONG, only_good
from deathmatch.run import failures, run_trial

# Below broken.py's limit at the first and third rate, above it at the second.
RATES = [100, 800, 110]
MODES = ["exits", "silent", "taken", "wrong", "crashes", "dies", "hangs",
         "deaf", "leaves", "loopback", "turns", "grows", "sheds",
         "fragile", "forks", "spreads", "tunes"]  # fmt: skip


# Of memory, for a server and what it starts.
LIMIT_BYTES = 400_000_000


@pytest.fixture(scope="module")
def measured(tmp_path_factory, network) -> tuple[Tree, Done, dict]:
    """One dataset of all the broken servers, and the null server, measured by Snakemake.

    The tree, what Snakemake said, and the folders of the trials.
    """
    tree = Tree(copy_tree(tmp_path_factory.mktemp("broken") / "tree"), network)
    for mode in MODES:
        waits = {"ready_timeout_s": 1} if mode in ("silent", "loopback") else {}
        tree.server(mode, mode, **waits)
    share = min(1, LIMIT_BYTES / psutil.virtual_memory().total)
    tree.replace("config/testbeds/netns.toml", "memory_share = 0.75", f"memory_share = {share}")
    tree.server("departs", "departs")
    with (tree.path / "servers/departs/server.toml").open("a") as file:
        file.write('[deviations]\n"HTTP/1.0" = "It says goodbye."\n')
    tree.server("unbuilt", "ok", build="echo what went wrong; exit 3")
    tree.server("unversioned", "ok", version="echo no such program >&2; exit 127")
    # An unanswered connection must not be waited for long.
    tree.replace("experiments/backlog.toml", "timeout_s = 5", "timeout_s = 1")
    # Nor one that answers wrongly, for a right answer.
    tree.replace("deathmatch/measure/steps.py", "HANG_S = 5", "HANG_S = 1")
    tree.dataset("broken", ["null", "departs", "unbuilt", "unversioned", *MODES], RATES)
    tree.replace(
        "config/datasets/broken.toml", "duration_s = 0.5", "duration_s = 0.5\nwarm_up_rate_rps = 50"
    )
    done = tree.snakemake("data/broken/backlog/points.parquet", dataset="broken")
    return tree, done, {server: path for (server, _), path in tree.trials("broken").items()}


def record(measured: tuple[Tree, Done, dict], server: str) -> dict:
    return json.loads((measured[2][server] / "trial.json").read_text())


def test_a_server_that_works_is_measured_beside_them(measured):
    found = record(measured, "null")
    assert (found["outcome"], found["reason"]) == ("measured", "")
    assert [point["server_state"] for point in found["points"]] == ["ran"] * 3
    assert [point["fresh_start"] for point in found["points"]] == [True, False, False]
    assert [point["offered_rate_rps"] for point in found["points"]] == RATES


def test_a_known_deviation_is_measured_and_told(measured):
    found = record(measured, "departs")
    assert (found["outcome"], found["reason"]) == ("measured", "HTTP/1.0: It says goodbye.")
    failed = [check for check in found["conformance"] if not check["ok"]]
    assert [check["name"] for check in failed] == ["HTTP/1.0"] and "Adieu" in failed[0]["seen"]
    assert [point["server_state"] for point in found["points"]] == ["ran"] * 3


@pytest.mark.parametrize(
    ("server", "outcome", "reason"),
    [
        ("unbuilt", "not built", "what went wrong"),
        ("unversioned", "not built", "no such program"),
        ("exits", "did not start", "ended before it listened (exit status 1)"),
        ("silent", "did not start", "within 1 s: it listens on no TCP port"),
        (
            "loopback",
            "did not start",
            "did not listen on port 8080 within 1 s: it listens on "
            "127.0.0.1:8080, which only its own host can reach: let it take {host}",
        ),
        ("wrong", "answers wrongly", "body b'Adieu, world', expected 'Hello, world'"),
        ("crashes", "answers wrongly", "it ended (exit status 1)\n"),
        ("fragile", "did not start", "before it was checked, after empty connections"),
        ("forks", "did not start", "its command must stay in the foreground"),
        ("spreads", "left its bounds", "it may run on CPU"),
        (
            "tunes",
            "left its bounds",
            "net.ipv4.tcp_fin_timeout was '60' before it was started, and "
            "is '7': let it leave the kernel's settings alone",
        ),
    ],
)
def test_server_that_could_not_be_measured(measured, server, outcome, reason):
    found = record(measured, server)
    assert found["outcome"] == outcome and reason in found["reason"]
    assert found["points"] == []


def test_each_trial_says_how_it_ended(measured):
    tree, done, folders = measured
    for server, end in [
        ("exits", "did not start: ended before it listened (exit status 1); see {}/server.log"),
        ("dies", "measured, with failures: died: signal SIGKILL at 800 req/s; see {}/server.log"),
    ]:
        path = folders[server].relative_to(tree.path)
        log = tree.path / "build" / "logs" / "trial" / path.relative_to("data")
        assert f"[trial] {end.format(path)}\n" in log.with_name(f"{log.name}.log").read_text()
        assert failures.measured(record(measured, server)) == ("measured" in end)
    # The run's own line says enough of it.
    assert " backlog null " in done.text
    assert f"{folders['null'].relative_to(tree.path)}/trial.json" not in done.text


def test_port_in_use(measured):
    """Whether or not the other answers well, the server's own end is told."""
    found = record(measured, "taken")
    assert found["outcome"] == "did not start"
    assert "(exit status 1)" in found["reason"]
    assert "Address already in use" in found["reason"]


def test_last_lines_of_its_log_are_kept(measured):
    assert "no such luck" in record(measured, "exits")["reason"]
    assert "that was no request" in record(measured, "crashes")["reason"]


@pytest.mark.parametrize(
    ("server", "state", "tail"),
    [
        ("dies", "died: signal SIGKILL", "out of luck"),
        ("hangs", "hung: TimeoutError", ""),
        ("turns", "answered wrongly: body b'Adieu, world', expected 'Hello, world'", ""),
        ("grows", "died: out of memory under the testbed's limit of 0.4 GB", "that is all"),
    ],
)
def test_sweep_goes_on_after_a_failure(measured, server, state, tail):
    found = record(measured, server)
    assert found["outcome"] == "measured, with failures"
    states = [point["server_state"] for point in found["points"]]
    assert states[0] == states[2] == "ran" and states[1].startswith(state)
    assert [point["fresh_start"] for point in found["points"]] == [True, False, True]
    assert tail in found["points"][1]["log_tail"] and found["points"][1]["log_tail"]
    assert len(found["stops"]) == 2
    folder = measured[2][server]
    # The second start of one that floods its log is in the part that is left out.
    cut = found["server_log"]["left_out_bytes"] > 0
    assert (folder / "server.log").read_text().count("$ taskset") == (1 if cut else 2)
    for rate in RATES:
        assert "Errors: fd-unavail" in (folder / f"httperf-{rate}.txt").read_text()


@pytest.mark.parametrize(
    ("server", "column", "first"),
    [
        ("sheds", "replies_5xx", "status 503, content as far as it came: "),
        # Of the same length, with status 200.
        ("turns", "replies_wrong_content", "status 200, content: Adieu, world"),
    ],
)
def test_wrong_answers_under_load_are_counted_and_are_no_replies(measured, server, column, first):
    """A server that sheds load gains nothing; the check between two rates sees that."""
    tree = measured[0]
    found = record(measured, server)
    assert found["outcome"] == "measured, with failures"
    assert found["points"][0]["wrong_answers"] == 0 < found["points"][1]["wrong_answers"]
    assert [point[FIRST_WRONG] for point in found["points"][:2]] == [None, first]
    assert record(measured, "null")["points"][1]["wrong_answers"] == 0
    points = pl.read_parquet(tree.path / "data/broken/backlog/points.parquet")
    (shed,) = only_good(points).filter(
        pl.col("server") == server, pl.col("offered_rate_rps") == RATES[1]
    ).to_dicts()  # fmt: skip
    assert shed[WRONG] == shed[column] == found["points"][1]["wrong_answers"]
    assert shed[FIRST_WRONG] == first
    assert shed["replies"] + shed[WRONG] == shed["replies_2xx"] + shed["replies_5xx"]
    said = (tree.path / f"build/logs/trial/broken/backlog/{server}").rglob("*.log")
    told = f"{shed[WRONG]} wrong answers at {RATES[1]} req/s, the first: {first}"
    assert any(told.rstrip() in log.read_text() for log in said)
    # The end of the run says it, and so does the check of the dataset.
    gave = rf"^backlog: .* gave {shed[WRONG]} wrong answers under load, the first: {first}; its"
    assert re.search(gave, measured[1].text, re.MULTILINE), measured[1].text
    checked = tree.deathmatch("check", "broken").text
    assert "warning: DM-WRONG" in checked
    assert told.rstrip() in " ".join(checked.split())


def test_a_limit_of_memory_is_recorded_and_its_breach(measured):
    found = {server: record(measured, server)["memory"] for server in ("null", "grows")}
    assert found["null"].keys() == found["grows"].keys()
    assert found["null"]["limit_bytes"] == pytest.approx(LIMIT_BYTES, rel=0.01)
    assert found["null"]["breaches"] == 0 < found["grows"]["breaches"]


def test_a_log_that_floods_is_cut_and_told(measured):
    _, done, folders = measured
    log = (folders["grows"] / "server.log").read_bytes()
    told = record(measured, "grows")["server_log"]
    # It was started three times, the last of which is not cut.
    assert len(log) <= told["limit_bytes"] < FLOOD_BYTES < told["left_out_bytes"]
    assert log.startswith(b"$ taskset ") and b"are left out here: no more than 10 MB are" in log
    assert record(measured, "null")["server_log"]["left_out_bytes"] == 0
    assert "that it printed are left out of its log" in done.text


def test_server_that_ignores_sigterm_is_killed(measured):
    found = record(measured, "deaf")
    assert found["outcome"] == "measured"
    (stop,) = found["stops"]
    assert stop["on_sigterm"] is False and len(stop["killed"]) == 1 and stop["left"] == []


def test_what_a_server_leaves_behind_is_killed(measured):
    (stop,) = record(measured, "leaves")["stops"]
    assert stop["on_sigterm"] is True and len(stop["killed"]) == 1 and stop["left"] == []


def test_stop_of_a_good_server_kills_nothing(measured):
    assert record(measured, "null")["stops"] == [{"on_sigterm": True, "killed": [], "left": []}]


def test_samples_cover_every_rate(measured):
    samples = pl.read_csv(measured[2]["null"] / "samples.csv")
    offered = samples.drop_nulls("offered_rate_rps").filter(pl.col("offered_rate_rps") > 0)
    for rate in RATES:
        during = offered.filter(pl.col("offered_rate_rps") == rate)
        opened = during["client_active_opens"][-1] - during["client_active_opens"][0]
        assert len(during) >= 3 and opened == rate / 2
        for what in ("server_cpu_ns", "client_cpu_ns", "server_rss_bytes", "server_descriptors"):
            assert during[what].max() > 0, what


def test_record_tells_the_machine_and_the_settings(measured):
    found = record(measured, "null")
    assert found["machine"]["httperf"].startswith("httperf: httperf-0.9.0")
    assert found["machine"]["cpus"] >= 1 and found["machine"]["kernel"]
    assert found["sysctl"]["server"]["net.core.somaxconn"] == "4096"
    assert found["sysctl"]["client"]["net.ipv4.tcp_tw_reuse"] == "1"
    assert found["version"].startswith("null server, ")
    assert found["descriptors"] >= 1024
    assert all(check["ok"] for check in found["conformance"]) and len(found["conformance"]) >= 5
    assert 0 < found["offering_us"] < found["wall_us"]
    steps_us = found["steps_us"]
    assert sum(steps_us.values()) - steps_us["testbed"] == found["wall_us"]
    assert steps_us["offering"] <= found["offering_us"] and steps_us["server_start"] > 0


def test_measuring_and_tables_end_well(measured):
    """A failure of a server is a result: Snakemake's own status is 0 up to here."""
    tree, done, _ = measured
    done.succeeded()
    trials = pl.read_parquet(tree.path / "data/broken/backlog/trials.parquet")
    assert set(trials["server"]) == {"null", "departs", "unbuilt", "unversioned", *MODES}
    points = pl.read_parquet(tree.path / "data/broken/backlog/points.parquet")
    lasting = {"null", "departs", "dies", "hangs", "deaf", "leaves", "turns", "grows", "sheds"}
    assert set(points["server"]) == lasting
    assert set(points["report"]) == {"whole"}


def test_complete_names_what_could_not_be_measured(measured):
    tree, _, _ = measured
    done = tree.deathmatch("failures", "broken").failed()
    assert done.status == 1
    for server, end in [("unbuilt", "not built"), ("exits", "did not start"),
                            ("wrong", "answers wrongly")]:  # fmt: skip
        assert f"servers/{server}: {end}, in 1 trial" in done.text
        assert f"fix servers/{server} and run again" in done.text
    for server in ("null", "departs", "dies", "hangs", "deaf", "leaves"):
        assert f"servers/{server}:" not in done.text


def test_retry_forgets_what_could_not_be_measured_and_only_that(tree: Tree):
    tree.server("unbuilt", "ok", build="exit 3")
    tree.dataset("tiny", ["null", "unbuilt"], [100])
    folders = {server: path for (server, _), path in tree.trials("tiny").items()}
    path = folders["unbuilt"].relative_to(tree.path)
    done = tree.deathmatch("trial", path).failed()
    assert done.status == run_trial.UNMEASURED
    assert "[trial] not built: $ exit 3; see build/servers/unbuilt/build.log" in done.text
    record = json.loads((folders["unbuilt"] / "trial.json").read_text()) | {"outcome": "measured"}
    kept = tree.write(f"{folders['null'].relative_to(tree.path)}/trial.json", json.dumps(record))
    build = tree.path / "build/servers/unbuilt/build.json"
    assert build.exists() and (folders["unbuilt"] / "trial.json").exists()
    done = tree.snakemake("retry", dataset="tiny").succeeded()
    assert "to be tried again: unbuilt" in done.text
    assert not build.exists() and not folders["unbuilt"].exists() and kept.exists()


def test_truncated_report_is_a_row_of_nulls(measured):
    tree, _, folders = measured
    log = folders["null"] / "httperf-800.txt"
    whole = log.read_text()
    log.write_text(whole[: whole.index("Reply time")])
    tree.deathmatch("tidy", "data/broken/backlog").succeeded()
    points = pl.read_parquet(tree.path / "data/broken/backlog/points.parquet")
    log.write_text(whole)
    cut = points.filter(pl.col("server") == "null", pl.col("offered_rate_rps") == 800).to_dicts()
    assert len(cut) == 1 and cut[0]["report"] == "truncated"
    assert cut[0]["replies"] is None and cut[0]["errors_total"] is None
    assert cut[0]["server_passive_opens"] is not None
    rest = points.filter(pl.col("server") == "null", pl.col("offered_rate_rps") != 800)
    assert rest["report"].to_list() == ["whole", "whole"] and rest["replies"].null_count() == 0


def test_a_trial_is_the_same_for_root_and_for_a_user(someones_tree: Tree):
    someones_tree.dataset("small", ["null"], [100])
    path = someones_tree.trials("small")["null", 1].relative_to(someones_tree.path)
    someones_tree.deathmatch("trial", path).succeeded()
    found = json.loads((someones_tree.path / path / "trial.json").read_text())
    assert (found["outcome"], found["reason"]) == ("measured", "")
    assert found["stops"] == [{"on_sigterm": True, "killed": [], "left": []}]
    assert found["memory"]["limit_bytes"] < psutil.virtual_memory().total
    assert found["memory"]["breaches"] == 0 and "cgroup" in found["memory"]["by"]
    assert "cgroup" in found["server_cpu"]["by"]
    samples = pl.read_csv(someones_tree.path / path / "samples.csv")
    assert samples["server_cpu_ns"].null_count() == 0 < samples["server_pss_bytes"].max()
    network = found["network_settings"]
    assert network["server"]["settings"]["net.ipv4.tcp_congestion_control"] in ("cubic", "reno")
    assert network["client"]["differs"]["net.ipv4.tcp_tw_reuse"] == "1"
    bed = files.testbed("netns").as_written
    for side in ("server", "client"):
        for key, value in bed[side]["sysctl"].items():
            # A kernel that lacks a setting has none in force.
            assert found["sysctl"][side][key].split() in (str(value).split(), [])


def test_little_disk_left(tree: Tree):
    """100 MB for data/, nothing said of the rest of the machine."""
    tree.dataset("small", ["null"], [100], trials=2)
    tree.deathmatch("build", "null").succeeded()
    script = (
        "mkdir data/small; mount -t tmpfs -o size=100M tmpfs data/small; "
        "mkdir -p data/small/backlog; touch data/small/backlog/kept; "
        'python -m deathmatch trial "$1"; status=$?; ls data/small/backlog; exit $status'
    )
    path = tree.trials("small")["null", 1].relative_to(tree.path)
    own = [] if AS_ROOT else ["--user", "--map-root-user"]
    done = tree.run("unshare", *own, "--mount", "sh", "-c", script, "sh", path).failed()
    assert "data/small/backlog: only 104 MB of disk are left\n  make room for 200 MB" in done.text
    assert "finished trials are kept" in done.text and done.text.splitlines()[-1] == "kept"


def test_disk_that_fills_up(tree: Tree):
    script = (
        "from deathmatch import errors\n"
        "def fill():\n"
        "    with open('/dev/full', 'w') as full:\n"
        "        full.write('x')\n"
        "errors.run_main(fill)"
    )
    done = tree.run("python", "-c", script).failed()
    assert "deathmatch: No space left on device\n  make room and run again" in done.text


def test_half_a_trial_is_never_seen(tree: Tree):
    """What an earlier, killed run left aside is neither read nor kept."""
    tree.dataset("half", ["null"], [100])
    path = tree.trials("half")["null", 1].relative_to(tree.path)
    tree.write(f"{path.parent}/.1.partial/httperf-100.txt", "rubbish")
    tree.write(f"{path.parent}/.1.partial/rubbish", "rubbish")
    tree.deathmatch("build", "null").succeeded()
    tree.deathmatch("trial", path).succeeded()
    assert [path.name for path in (tree.path / path.parent).iterdir()] == ["1"]
    assert not (tree.path / path / "rubbish").exists()
