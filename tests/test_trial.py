"""Servers that fail in every way: each failure is recorded as a result, and no trial is lost."""

import json
import re
from pathlib import Path

import polars as pl
import psutil
import pytest
from conftest import AS_ROOT, Done, Tree, copy_tree
from servers.broken import FLOOD_BYTES

from deathmatch import errors
from deathmatch.load.generator import FIRST_WRONG
from deathmatch.plan import files
from deathmatch.quantities.quantity import WRONG, only_good
from deathmatch.run import failures, run_trial

# Below broken.py's limit at the first and third rate, above it at the second.
RATES = [100, 800, 110]
MODES = ["departs", "exits", "taken", "crashes", "dies", "hangs", "leaves", "turns", "grows",
         "fragile", "forks", "spreads", "tunes"]  # fmt: skip
# The memory that a server and its children may use together.
LIMIT_BYTES = 400_000_000


@pytest.fixture(scope="module")
def measured(tmp_path_factory, network) -> tuple[Tree, Done, dict]:
    """One dataset of all the broken servers, and the null server, measured by Snakemake.

    Returns the tree, what Snakemake printed, and the folders of the trials. Half of a trial of the
    null server is there before, as a killed run leaves it.
    """
    tree = Tree(copy_tree(tmp_path_factory.mktemp("broken") / "tree"), network)
    for mode in MODES:
        tree.server(mode, mode)
    share = min(1, LIMIT_BYTES / psutil.virtual_memory().total)
    tree.replace("config/testbeds/netns.toml", "memory_share = 0.75", f"memory_share = {share}")
    with (tree.path / "servers/departs/server.toml").open("a") as file:
        file.write('[deviations]\n"HTTP/1.0" = "It says goodbye."\n')
    tree.server("unbuilt", "ok", build="echo what went wrong; exit 3")
    # Servers that hang must not be waited for long.
    tree.replace("experiments/backlog.toml", "timeout_s = 5", "timeout_s = 1")
    tree.replace("deathmatch/measure/steps.py", "HANG_S = 5", "HANG_S = 1")
    tree.dataset("broken", ["null", "unbuilt", *MODES], RATES)
    tree.replace(
        "config/datasets/broken.toml",
        "duration_s = 0.5",
        "duration_s = 0.5\nwarm_up_rate_rps = 50\nwarm_up_s = 0.3",
    )
    folders = {server: path for (server, _), path in tree.trials("broken").items()}
    for name in ("httperf-100.txt", "rubbish"):
        tree.write(folders["null"].with_name(".1.partial") / name, "rubbish")
    return tree, tree.snakemake("data/broken/backlog/points.parquet", dataset="broken"), folders


def record(measured: tuple[Tree, Done, dict], server: str) -> dict:
    return json.loads((measured[2][server] / "trial.json").read_text())


def assert_whole(folder: Path) -> None:
    """Check the testbed and the end in the record of a good server's trial."""
    found = json.loads((folder / "trial.json").read_text())
    assert (found["outcome"], found["reason"]) == ("measured", "")
    assert found["stops"] == [{"on_sigterm": True, "killed": [], "left": []}]
    assert found["memory"]["limit_bytes"] < psutil.virtual_memory().total
    assert found["memory"]["breaches"] == 0 and "cgroup" in found["memory"]["by"]
    assert "cgroup" in found["server_cpu"]["by"]
    samples = pl.read_csv(folder / "samples.csv")
    assert samples["server_cpu_ns"].null_count() == 0 < samples["server_pss_bytes"].max()
    network = found["network_settings"]
    assert network["server"]["settings"]["net.ipv4.tcp_congestion_control"] in ("cubic", "reno")
    assert network["client"]["differs"]["net.ipv4.tcp_tw_reuse"] == "1"
    bed = files.testbed("netns").as_written
    for side in ("server", "client"):
        for key, value in bed[side]["sysctl"].items():
            # A kernel that lacks a setting has none in force.
            assert found["sysctl"][side][key].split() in (str(value).split(), [])


def test_a_server_that_works_is_measured_among_them(measured):
    assert_whole(measured[2]["null"])
    found = record(measured, "null")
    assert found["memory"]["limit_bytes"] == pytest.approx(LIMIT_BYTES, rel=0.01)
    assert found["memory"]["breaches"] == 0 < record(measured, "grows")["memory"]["breaches"]
    assert [point["server_state"] for point in found["points"]] == ["ran"] * 3
    assert [point["fresh_start"] for point in found["points"]] == [True, False, False]
    assert [point["offered_rate_rps"] for point in found["points"]] == RATES
    # The files of a killed run are neither read nor kept.
    assert [path.name for path in measured[2]["null"].parent.iterdir()] == ["1"]
    assert not (measured[2]["null"] / "rubbish").exists()


def test_a_known_deviation_is_measured_and_reported(measured):
    found = record(measured, "departs")
    assert (found["outcome"], found["reason"]) == ("measured", "HTTP/1.0: It says goodbye.")
    failed = [check for check in found["conformance"] if not check["ok"]]
    assert [check["name"] for check in failed] == ["HTTP/1.0"] and "Adieu" in failed[0]["seen"]
    assert [point["server_state"] for point in found["points"]] == ["ran"] * 3


@pytest.mark.parametrize(
    ("server", "outcome", "reason"),
    [
        ("unbuilt", "not built", ["what went wrong"]),
        ("exits", "did not start", ["ended before it listened (exit status 1)", "no such luck"]),
        # The server's own end is the reason, even if what holds its port answers well.
        ("taken", "did not start", ["(exit status 1)", "Address already in use"]),
        ("crashes", "answers wrongly", ["it ended (exit status 1)\n", "that was no request"]),
        ("fragile", "did not start", ["before it was checked, after empty connections"]),
        ("forks", "did not start", ["its command must stay in the foreground"]),
        ("spreads", "left its bounds", ["it may run on CPU"]),
        (
            "tunes",
            "left its bounds",
            [
                "net.ipv4.tcp_fin_timeout was '60' before it was started, and "
                "is '7': let it leave the kernel's settings alone"
            ],
        ),
    ],
)
def test_server_that_could_not_be_measured(measured, server, outcome, reason):
    found = record(measured, server)
    assert found["outcome"] == outcome and all(one in found["reason"] for one in reason)
    assert found["points"] == []


def test_each_trial_reports_how_it_ended(measured):
    tree, done, folders = measured
    for server, end in [
        ("exits", "did not start: ended before it listened (exit status 1); see {}/server.log"),
        ("dies", "measured, with failures: died: signal SIGKILL at 800 req/s; see {}/server.log"),
    ]:
        path = folders[server].relative_to(tree.path)
        log = tree.path / "build" / "logs" / "trial" / path.relative_to("data")
        assert f"[trial] {end.format(path)}\n" in log.with_name(f"{log.name}.log").read_text()
        assert failures.measured(record(measured, server)) == ("measured" in end)
    # The line that the run prints is enough for a trial that succeeded.
    assert " backlog null " in done.text
    assert f"{folders['null'].relative_to(tree.path)}/trial.json" not in done.text


@pytest.mark.parametrize(
    ("server", "state", "tail"),
    [
        ("dies", "died: signal SIGKILL", "out of luck"),
        ("hangs", "hung: TimeoutError", ""),
        ("turns", "answered wrongly: body b'Adieu, world', expected 'Hello, world'", ""),
        ("grows", "died: out of memory under the testbed's limit of 0.4 GB", "that is all"),
    ],
)
def test_a_sweep_continues_after_a_failure(measured, server, state, tail):
    found = record(measured, server)
    assert found["outcome"] == "measured, with failures"
    states = [point["server_state"] for point in found["points"]]
    assert states[0] == states[2] == "ran" and states[1].startswith(state)
    assert [point["fresh_start"] for point in found["points"]] == [True, False, True]
    assert tail in found["points"][1]["log_tail"] and found["points"][1]["log_tail"]
    assert len(found["stops"]) == 2
    folder = measured[2][server]
    # Where the log is cut, the line of the second start is in what was left out.
    cut = found["server_log"]["left_out_bytes"] > 0
    assert (folder / "server.log").read_text().count("$ taskset") == (1 if cut else 2)
    for rate in RATES:
        assert "Errors: fd-unavail" in (folder / f"httperf-{rate}.txt").read_text()


def test_wrong_answers_under_load_are_counted_and_are_no_replies(measured):
    """They have the right length and status 200; the check between two rates finds them as well."""
    tree, server = measured[0], "turns"
    column, first = "replies_wrong_content", "status 200, content: Adieu, world"
    found = record(measured, server)
    assert found["outcome"] == "measured, with failures"
    assert found["points"][0]["wrong_answers"] == 0 < found["points"][1]["wrong_answers"]
    assert [point[FIRST_WRONG] for point in found["points"][:2]] == [None, first]
    assert record(measured, "null")["points"][1]["wrong_answers"] == 0
    points = pl.read_parquet(tree.path / "data/broken/backlog/points.parquet")
    (turned,) = only_good(points).filter(
        pl.col("server") == server, pl.col("offered_rate_rps") == RATES[1]
    ).to_dicts()  # fmt: skip
    assert turned[WRONG] == turned[column] == found["points"][1]["wrong_answers"]
    assert turned[FIRST_WRONG] == first
    assert turned["replies"] + turned[WRONG] == turned["replies_2xx"]
    said = (tree.path / f"build/logs/trial/broken/backlog/{server}").rglob("*.log")
    told = f"{turned[WRONG]} wrong answers at {RATES[1]} req/s, the first: {first}"
    assert any(told.rstrip() in log.read_text() for log in said)
    # The end of the run and the check of the dataset report them as well.
    gave = rf"^backlog: .* gave {turned[WRONG]} wrong answers under load, the first: {first}; its"
    assert re.search(gave, measured[1].text, re.MULTILINE), measured[1].text
    checked = tree.deathmatch("check", "broken").text
    assert "warning: DM-WRONG" in checked
    assert told.rstrip() in " ".join(checked.split())


def test_a_log_that_grows_too_long_is_cut_and_reported(measured):
    _, done, folders = measured
    log = (folders["grows"] / "server.log").read_bytes()
    told = record(measured, "grows")["server_log"]
    # The server was started three times; the log of the last start is not cut.
    assert len(log) <= told["limit_bytes"] < FLOOD_BYTES < told["left_out_bytes"]
    assert log.startswith(b"$ taskset ") and b"are left out here: no more than 10 MB are" in log
    assert record(measured, "null")["server_log"]["left_out_bytes"] == 0
    assert "of what it printed" in done.text


@pytest.mark.parametrize(
    ("server", "on_sigterm", "killed"),
    [("null", True, 0), ("departs", False, 1), ("leaves", True, 1)],
)
def test_what_a_server_leaves_behind_is_killed(measured, server, on_sigterm, killed):
    """The server `departs` ignores SIGTERM; `leaves` has a child that outlives it."""
    found = record(measured, server)
    assert found["outcome"] == "measured"
    (stop,) = found["stops"]
    assert (stop["on_sigterm"], len(stop["killed"]), stop["left"]) == (on_sigterm, killed, [])


def test_samples_cover_every_rate(measured):
    samples = pl.read_csv(measured[2]["null"] / "samples.csv")
    offered = samples.drop_nulls("offered_rate_rps").filter(pl.col("offered_rate_rps") > 0)
    for rate in RATES:
        during = offered.filter(pl.col("offered_rate_rps") == rate)
        opened = during["client_active_opens"][-1] - during["client_active_opens"][0]
        assert len(during) >= 3 and opened == rate / 2
        for what in ("server_cpu_ns", "client_cpu_ns", "server_rss_bytes", "server_descriptors"):
            assert during[what].max() > 0, what


def test_the_record_has_the_machine_and_the_settings(measured):
    found = record(measured, "null")
    assert found["machine"]["httperf"].startswith("httperf: httperf-0.9.0")
    assert found["version"].startswith("null server, ")
    assert found["descriptors"] >= 1024
    assert all(check["ok"] for check in found["conformance"]) and len(found["conformance"]) >= 5
    assert 0 < found["offering_us"] < found["wall_us"]
    steps_us = found["steps_us"]
    assert sum(steps_us.values()) - steps_us["testbed"] == found["wall_us"]
    assert steps_us["offering"] <= found["offering_us"] and steps_us["server_start"] > 0


def test_the_run_and_its_tables_are_complete(measured):
    """A failure of a server is a result: the status of Snakemake is 0."""
    tree, done, _ = measured
    done.succeeded()
    trials = pl.read_parquet(tree.path / "data/broken/backlog/trials.parquet")
    assert set(trials["server"]) == {"null", "unbuilt", *MODES}
    points = pl.read_parquet(tree.path / "data/broken/backlog/points.parquet")
    lasting = {"null", "departs", "dies", "hangs", "leaves", "turns", "grows"}
    assert set(points["server"]) == lasting
    assert set(points["report"]) == {"whole"}


def test_failures_names_what_could_not_be_measured(measured):
    tree, _, _ = measured
    done = tree.deathmatch("failures", "broken").failed()
    assert done.status == 1
    for server, end in [("unbuilt", "not built"), ("exits", "did not start"),
                            ("crashes", "answers wrongly")]:  # fmt: skip
        assert f"servers/{server}: {end}, in 1 trial" in done.text
        assert f"fix servers/{server} and run again" in done.text
    for server in ("null", "departs", "dies", "hangs", "leaves"):
        assert f"servers/{server}:" not in done.text


def path_in(dataset: str, measured: tuple[Tree, Done, dict], server: str) -> str:
    """Return the path of a server's trial in a dataset that has the same variant of it."""
    path = measured[2][server].relative_to(measured[0].path)
    return str(path).replace("data/broken", f"data/{dataset}")


def test_retry_removes_only_what_could_not_be_measured(measured):
    tree, _, _ = measured
    tree.dataset("tiny", ["null", "unbuilt"], [100])
    path = path_in("tiny", measured, "unbuilt")
    done = tree.deathmatch("trial", path).failed()
    assert done.status == run_trial.UNMEASURED
    assert "; exit 3; see build/servers/unbuilt/build.log" in done.text
    found = json.loads((tree.path / path / "trial.json").read_text()) | {"outcome": "measured"}
    kept = tree.write(f"{path_in('tiny', measured, 'null')}/trial.json", json.dumps(found))
    build = tree.path / "build/servers/unbuilt/build.json"
    assert build.exists()
    done = tree.snakemake("retry", dataset="tiny").succeeded()
    assert "to be measured again: unbuilt" in done.text
    assert not build.exists() and not (tree.path / path).exists() and kept.exists()


@pytest.mark.parametrize("someones_tree", ["user"], indirect=True)
def test_a_trial_is_the_same_for_a_user(someones_tree: Tree):
    """Where root runs the tests, the other trials here are measured by root."""
    someones_tree.dataset("small", ["null"], [100])
    (folder,) = someones_tree.trials("small").values()
    someones_tree.deathmatch("trial", folder.relative_to(someones_tree.path)).succeeded()
    assert_whole(folder)
    kept = json.loads((folder / "trial.json").read_text())["awake"]
    assert bool(kept["cpus"]) != ("refused" in kept)


def test_little_disk_left(measured):
    """Only data/ has little room: 100 MB."""
    tree, _, _ = measured
    tree.dataset("small", ["null"], [100], trials=2)
    script = (
        "mkdir data/small; mount -t tmpfs -o size=100M tmpfs data/small; "
        "mkdir -p data/small/backlog; touch data/small/backlog/kept; "
        'python -m deathmatch trial "$1"; status=$?; ls data/small/backlog; exit $status'
    )
    path = path_in("small", measured, "null")
    own = [] if AS_ROOT else ["--user", "--map-root-user"]
    done = tree.run("unshare", *own, "--mount", "sh", "-c", script, "sh", path).failed()
    assert "data/small/backlog: only 104 MB of disk are left\n  make room for 200 MB" in done.text
    assert "finished trials are kept" in done.text and done.text.splitlines()[-1] == "kept"


def test_disk_that_fills_up(capsys):
    assert errors.status_of(lambda: Path("/dev/full").write_text("x")) == 1
    said = capsys.readouterr().err
    assert "deathmatch: No space left on device\n  make room and run again" in said
