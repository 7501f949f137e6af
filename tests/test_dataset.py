"""A dataset has one toolchain, and `check` reports what is wrong with a dataset, and where."""

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from conftest import Tree, copy_tree

from deathmatch.builds import tool_differences, toolchain
from deathmatch.errors import UserError

FOLDER = "data/tiny/backlog/null/backlog=128,schedulers=one,somaxconn=4096"
RECORD, SECOND = (f"{FOLDER}/{n}/trial.json" for n in (1, 2))
POINTS, SAMPLES = "data/tiny/backlog/points.parquet", "data/tiny/backlog/samples.parquet"


@pytest.fixture(scope="module")
def measured(tmp_path_factory, network) -> Tree:
    """A copy with a small dataset, measured."""
    tree = Tree(copy_tree(tmp_path_factory.mktemp("measured") / "tree"), network)
    tree.dataset("tiny", ["null"], [100], trials=2)
    tree.snakemake(POINTS, dataset="tiny").succeeded()
    shutil.copytree(tree.path / "data" / "tiny", tree.path / "kept")
    return tree


@pytest.fixture
def tiny(measured: Tree) -> Tree:
    """The same, as it was before any test; nothing that was measured is written again."""
    shutil.rmtree(measured.path / "data" / "tiny")
    shutil.copytree(measured.path / "kept", measured.path / "data" / "tiny")
    measured.environment.clear()
    return measured


def edit(tree: Tree, change: Callable[[dict], object], name: str = RECORD) -> None:
    record = json.loads((tree.path / name).read_text())
    change(record)
    tree.write(name, json.dumps(record))


def test_a_trial_records_the_package_of_each_tool(tiny: Tree):
    tools = json.loads((tiny.path / RECORD).read_text())["tools"]
    assert tools["harness"]["kernel"] == platform.release()
    assert {"httperf", "roundtrip", "python", "snakemake", "toolchain"} <= set(tools["harness"])
    shown = ["dpkg-query", "--show", "--showformat", "${Package} ${Version}"]
    for tool, package in {"gcc": "gcc", "cc": "gcc-12"}.items():
        said = subprocess.run([*shown, package], capture_output=True, text=True, check=True)
        assert tools["server"][tool] == said.stdout


def test_the_identity_of_a_program(tmp_path):
    mine = tmp_path / "mine"
    mine.write_text("a program of nobody's\n")
    found = toolchain.identify({"mine": mine, "dash": "/bin/sh", "perl": "/usr/bin/perl"})
    assert found["mine"].startswith("no package, sha256 ")
    assert found["dash"].startswith("dash 0.") and found["perl"].startswith("perl-base 5.")
    store = "/nix/store/0c5b8vw40d1i1qjh5q0x-erlang-28.1"
    assert toolchain.identify({"erl": f"{store}/bin/erl"}) == {"erl": store}


def test_differences_that_count():
    def trial(experiment: str = "static", server: str = "a", cc: str = "1", **harness: str) -> dict:
        tools = {"harness": {"httperf": "1", "python": "1"} | harness, "server": {"cc": cc}}
        return {"experiment": experiment, "server": server, "tools": tools}

    def different(*trials: dict) -> list[str]:
        named = ((str(number), each) for number, each in enumerate(trials))
        return [tool for tool, _ in tool_differences.differences(named)]

    with pytest.raises(UserError, match=r"cc of servers/a is\n    1 (?s:.)*data/tiny/\*/a"):
        tool_differences.check("tiny", (("here", trial()), ("there", trial(cc="2"))))

    assert different(trial(), trial(python="2"), {"experiment": "static", "server": "a"}) == []
    assert different(trial(), trial(server="b", cc="2")) == []
    assert different(trial(), trial(cc="2")) == ["cc of servers/a"]
    # Experiments may be measured on different days, but all from one source of tools.
    dynamic, later = trial("dynamic"), trial("dynamic", httperf="2")
    assert different(trial(), later) == []
    assert different(trial(), dynamic, later) == ["httperf"]
    assert different(trial(toolchain="debian"), trial("dynamic", toolchain="nix")) == ["toolchain"]


CHECK = """
from deathmatch.run import cli_config
settings = dict(dataset="tiny", testbed="netns", servers="all", experiments="all")
cli_config.study(cli_config.settings(settings)).check_toolchain()
"""


def test_two_toolchains_do_not_make_one_dataset(tiny: Tree):
    tiny.environment["DEATHMATCH_TOOLCHAIN"] = "nix"
    # With nothing left to measure it may write the paper.
    tiny.run("python", "-c", CHECK).succeeded()
    shutil.rmtree(tiny.path / FOLDER / "2")
    said = tiny.snakemake("-n", dataset="tiny").failed().text
    for part in (
        "data/tiny: two toolchains would be mixed: toolchain is",
        f"debian   ({FOLDER}/1)", "nix   (this machine now)", "rm -r data/tiny\n",
        "cp config/datasets/tiny.toml config/datasets/tiny-2.toml",
    ):  # fmt: skip
        assert part in said
    # A trial that is to be measured again anyway is no reason.
    edit(tiny, lambda record: record["spec"].update(server_sha256="0" * 64))
    tiny.run("python", "-c", CHECK).succeeded()


def test_a_load_generator_of_another_build_does_not_go_on_with_a_dataset(tiny: Tree):
    shutil.rmtree(tiny.path / FOLDER / "2")
    other = tiny.write("elsewhere/httperf", f'#!/bin/sh\nexec {shutil.which("httperf")} "$@"\n')
    other.chmod(0o755)
    tiny.environment["PATH"] = f"{other.parent}:{os.environ['PATH']}"
    said = tiny.deathmatch("trial", f"{FOLDER}/2").failed().text
    assert "two toolchains would be mixed: httperf is\n" in said
    assert f"({FOLDER}/1)" in said and "(this machine now)" in said
    assert not (tiny.path / SECOND).exists()


def test_the_lock_of_nix_is_recorded_where_its_tools_are_used(tiny: Tree):
    script = (
        "import os\nfrom pathlib import Path\nfrom deathmatch.builds import toolchain\n"
        "for name, text in (('debian', ''), ('nix', 'one'), ('nix', 'two')):\n"
        "    Path('flake.lock').write_text(text)\n    os.environ['DEATHMATCH_TOOLCHAIN'] = name\n"
        "    print(toolchain.harness().get('flake.lock'))"
    )
    said = tiny.run("python", "-c", script).succeeded().text.splitlines()
    assert said[0] == "None" and len(set(said)) == 3


# A busy machine breaks them, which is what they are for.
OF_THE_MACHINE = {"DM-STEAL", "DM-NEIGHBOUR"}


def test_a_dataset_measured_now_lacks_nothing_but_a_commit(tiny: Tree):
    """The copy in which it was measured is no clone: whoever measures in one passes."""
    record = json.loads((tiny.path / RECORD).read_text())
    assert (record["schema_version"], record["seed"]) == (2, 1)
    done = tiny.deathmatch("check", "tiny", "--strict", "--json").failed()
    assert done.status == 3
    found = json.loads(done.text[done.text.index("{") :])["findings"]
    rejected = [one for one in found if one["verdict"] == "reject"]
    assert {one["check"] for one in rejected} - OF_THE_MACHINE == {"DM-COMMIT"}
    places = [one["where"] for one in rejected if one["check"] == "DM-COMMIT"]
    assert places == [f"{FOLDER}/1", f"{FOLDER}/2"]


def test_servers_that_are_not_chosen_may_be_missing(tiny: Tree):
    """`check` and `archive` know the choice of the run that measured."""
    whole = (tiny.path / "config/datasets/tiny.toml").read_text()
    tiny.replace("config/datasets/tiny.toml", "['null']", "['null', 'yucan']")
    # A newer lock of Nix makes nothing stale that Debian's tools measured.
    tiny.write("flake.lock", "newer")
    record = (tiny.path / RECORD).read_text()
    try:
        assert "rejected: DM-MISSING" in tiny.deathmatch("check", "tiny").failed().text
        done = tiny.snakemake("check_dataset", "archive", dataset="tiny", servers="null")
        assert "data/tiny: passed: " in done.succeeded().text
        assert "servers=null chooses" in done.text
        assert (tiny.path / "data/tiny/backlog/raw.tar.xz").exists()
        said = tiny.deathmatch("archive", "tiny", "--servers=yucan").failed().text
        assert "./shell snakemake --config dataset=tiny servers=yucan" in said
    finally:
        tiny.write("config/datasets/tiny.toml", whole)
    assert (tiny.path / RECORD).read_text() == record


HOME = Path("/home", "ada")


def frame(tree: Tree, name: str, **columns: pl.Expr) -> None:
    path = tree.path / name
    pl.read_parquet(path).with_columns(**columns).write_parquet(path)


def of_records_and_logs(tree: Tree) -> None:
    (tree.path / SAMPLES).unlink()
    edit(tree, lambda record: record["tools"]["harness"].update(httperf="0.8"))
    edit(tree, lambda record: record["spec"].update(rates_rps=[7]))
    for number, line in enumerate((f"open {HOME}/x.erl", "by lovelace", f"in {tree.path}/x")):
        tree.write(f"{FOLDER}/2/{number}.log", line)


def damaged(tree: Tree) -> None:
    shutil.copytree(tree.path / FOLDER / "2", tree.path / FOLDER / "3")
    tree.write(RECORD, "{")
    tree.write(POINTS, "PAR1")
    edit(tree, lambda record: record.update(outcome="fine"), SECOND)


def counters(tree: Tree) -> None:
    shutil.rmtree(tree.path / FOLDER / "2")
    frame(
        tree, POINTS, replies=pl.col("requests") + 1, server_cpu_ns=pl.lit(10**15),
        server_resets_sent=pl.lit(-1, pl.Int64), server_passive_opens=pl.lit(None, pl.Int64),
    )  # fmt: skip
    frame(tree, SAMPLES, accept_queue_connections=pl.lit(9999, pl.Int64))


# Several in one, as starting Python takes longer than the check: changes, the checks that see them,
# what their findings say.
MISTAKES: list[tuple[Callable[[Tree], object], set[str], list[str]]] = [
    (
        of_records_and_logs,
        {"DM-TABLES", "DM-TOOLS", "DM-SPEC", "DM-PRIVATE"},
        [f"{SAMPLES}: gone", "httperf is ", "0.8", f"{FOLDER}/1: rates_rps is not as specified",
         f"{FOLDER}/2/0.log: {HOME}/", f"{FOLDER}/2/1.log: lovelace", f"{FOLDER}/2/2.log: "],
    ),
    (
        damaged,
        {"DM-UNPLANNED", "DM-RECORD", "DM-TABLES"},
        [f"{FOLDER}/3: the dataset has no such trial", f"{FOLDER}/1: not JSON",
         f"{FOLDER}/2: key outcome: Input should be 'measured', 'measured, with failures'",
         f"{POINTS}: it cannot be read: "],
    ),
    (
        counters,
        {"DM-MISSING", "DM-COUNTERS"},
        [f"{FOLDER}/2: it is planned", f"{FOLDER}/1: LAW-REQUESTS is broken at 100 req/s",
         "LAW-CPU is broken", "LAW-GROWING is broken", "LAW-COUNTED is broken",
         "LAW-QUEUE is broken"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "checks", "parts"), MISTAKES)
def test_a_fault_is_found_where_it_is(tiny: Tree, spoil, checks, parts):
    tiny.environment["LOGNAME"] = "lovelace"
    spoil(tiny)
    done = tiny.deathmatch("check", "tiny", "--json").failed()
    assert done.status == 3
    report = json.loads(done.text[done.text.index("{") :])
    assert {one["check"] for one in report["findings"]} == checks
    findings = [f"{one['where']}: {one['text']}" for one in report["findings"]]
    for part in parts:
        assert any(part in finding for finding in findings), findings


def test_paths_are_relative_in_what_a_server_says(tiny: Tree):
    tiny.server("one", "ok", run="python3 {folder}/broken.py ok {host} {port}")
    # It runs where it is built.
    tiny.server("lost", "ok", run="sh -c 'pwd; exit 1' {host} {port}")
    tiny.dataset("paths", ["one", "lost"], [100])
    said = {"one": "python3 servers/one/broken.py", "lost": "build/servers/lost\n"}
    for name, part in said.items():
        path = f"data/paths/backlog/{name}/somaxconn=4096/1"
        tiny.deathmatch("trial", path)
        for file in (tiny.path / path).iterdir():
            assert str(tiny.path).encode() not in file.read_bytes()
        log = (tiny.path / path / "server.log").read_text()
        assert log.startswith("$ taskset --cpu-list") and part in log
    reason = json.loads((tiny.path / path / "trial.json").read_text())["reason"]
    assert reason.endswith("\nbuild/servers/lost")
