"""Snakemake: what it makes again and what not, and that killing it loses and leaves nothing."""

import os
import re
import shutil
import signal
from pathlib import Path

import polars as pl
import psutil
import pytest
from conftest import (
    HUNG_S,
    Tree,
    copy_tree,
    descendant,
    descendants,
    ended,
    kill,
    network_namespaces,
    own_network_namespaces,
    traces,
    wait_for,
)

from deathmatch.plan import dataset

POINTS = "data/tiny/backlog/points.parquet"


def stamps(tree: Tree) -> dict[str, tuple[int, int]]:
    """Return what tells whether a trial was measured again: its record's file and time."""
    found = {}
    for path in sorted(tree.path.glob("data/tiny/backlog/*/*/[0-9]*/trial.json")):
        found[str(path.relative_to(tree.path))] = (path.stat().st_ino, path.stat().st_mtime_ns)
    return found


def dry_run(tree: Tree, target: str = POINTS, dataset: str = "tiny") -> str:
    return tree.snakemake(target, "-n", "--quiet", "reason", dataset=dataset).succeeded().text


def jobs(text: str) -> dict[str, int]:
    """Return how many jobs of each rule a dry run plans, from what it prints."""
    return {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", text, re.MULTILINE)}


def to_do(tree: Tree, target: str = POINTS, dataset: str = "tiny") -> dict[str, int]:
    return jobs(dry_run(tree, target, dataset))


@pytest.fixture(scope="module")
def killed_and_resumed(tmp_path_factory, network, lock_holders) -> tuple[Tree, dict]:
    """A tree whose measurement was killed with SIGKILL in its second trial, then run again.

    What is left at each moment is noted, for the tests below.
    """
    tree = Tree(copy_tree(tmp_path_factory.mktemp("killed") / "tree"), network)
    tree.dataset("tiny", ["null"], [100], duration_s=1, trials=3)
    machine = traces()
    process = tree.start("snakemake", POINTS, "--config", "dataset=tiny")
    wait_for(lambda: stamps(tree), "a first trial", process)
    wait_for(lambda: descendant(process.pid, "httperf"), "a second trial offers load", process)
    below = descendants(process.pid)
    spaces = own_network_namespaces(below)
    names = {p.name() for p in below if p.is_running()}
    assert lock_holders() == 1 and len(spaces) == 2 and {"null-server", "httperf"} <= names
    kill(process)
    finished = stamps(tree)
    wait_for(lambda: ended(below), f"all of {names} ended")
    wait_for(lambda: not spaces & network_namespaces(), "its network namespaces are gone")
    # It was ended: a trial that goes on leaves its record.
    assert stamps(tree) == finished
    noted = {
        "finished": finished, "holders": lock_holders(), "same machine": traces() == machine,
    }  # fmt: skip
    noted["again"] = tree.snakemake(POINTS, "--verbose", dataset="tiny")
    noted["resumed"] = stamps(tree)
    return tree, noted


def test_a_rerun_goes_on_where_the_killed_one_was(killed_and_resumed):
    """That its processes and namespaces went is checked as it was killed."""
    tree, noted = killed_and_resumed
    assert noted["holders"] == 0 and noted["same machine"]
    noted["again"].succeeded()
    assert len(noted["finished"]) in (1, 2)
    assert len(noted["resumed"]) == 3
    assert noted["finished"].items() <= noted["resumed"].items()
    assert not list(tree.path.glob("data/tiny/**/.*.partial"))
    measured = len(noted["finished"])
    assert f"{measured} of 3 trials, about" in noted["again"].text
    assert "3 of 3 trials, all measured] backlog null " in noted["again"].text
    assert re.search(r"step \d+ of \d+\] tidy backlog", noted["again"].text)
    ending = noted["again"].text.splitlines()[-3:]
    assert [line.split(":")[0] for line in ending] == ["report", "failed", "next"]
    # On a busy machine client, testbed or other work may be the limit at each of the three points.
    assert re.search(r"nothing; 3 of 3 trials measured|(client-|own |other work).* of 3", ending[1])
    logs = sorted(tree.path.glob("build/logs/trial/tiny/backlog/null/*/*.log"))
    assert [log.stem for log in logs] == ["1", "2", "3"]
    # The scheduler looks for jobs when one has ended, not each second, which takes CPU from trials.
    assert 1 <= noted["again"].text.count("Ready jobs:") <= 5


def test_touched_files_and_a_deleted_build_folder_measure_nothing_again(killed_and_resumed):
    tree, _ = killed_and_resumed
    before = stamps(tree)
    for name in (
        "servers/null/null.c", "servers/null/server.toml", "config/datasets/tiny.toml",
        "config/testbeds/netns.toml", "experiments/backlog.toml", "deathmatch/measure/trial.py",
        "clients/httperf/deathmatch.patch", "workflow/measure.smk", "Snakefile",
    ):  # fmt: skip
        (tree.path / name).touch()
    shutil.rmtree(tree.path / "build")
    tree.snakemake(POINTS, dataset="tiny").succeeded()
    assert stamps(tree) == before


@pytest.mark.parametrize(
    ("names", "rules"),
    [
        (["load/httperf.py"], {"tidy", "notebook"}),
        # A chart of another notebook, and code that makes no table.
        (["paper/charts/c10k.py", "builds/copy.py", "hosts/audit.py", "run/study.py"], set()),
    ],
)
def test_a_changed_module_makes_again_what_uses_it(killed_and_resumed, names, rules):
    tree, _ = killed_and_resumed
    notebook = "paper/tiny/notebooks/01-backlog.ipynb"
    # When it is made decides, not what it holds.
    tree.write(notebook, "")
    files = [tree.path / "deathmatch" / name for name in names]
    before = [(file, file.stat(), file.read_text()) for file in files]
    for file, _, text in before:
        file.write_text(f"{text}\n# Changed.\n")
    planned = to_do(tree, notebook)
    for file, stat, text in before:
        file.write_text(text)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert set(planned) - {"total"} == rules


@pytest.mark.parametrize(
    ("name", "old", "new", "trials"),
    [
        ("config/datasets/tiny.toml", "trials = 3", "trials = 5", 2),
        ("servers/null/null.c", "#define _GNU_SOURCE", "/* */\n#define _GNU_SOURCE", 3),
    ],
)
def test_what_decides_a_measurement_makes_it_again(killed_and_resumed, name, old, new, trials):
    tree, _ = killed_and_resumed
    whole = (tree.path / name).read_text()
    tree.replace(name, old, new)
    text = dry_run(tree)
    tree.write(name, whole)
    assert jobs(text).get("trial", 0) == trials
    done, planned = map(int, re.search(r"servers?: (\d+) of (\d+) trials", text).groups())
    assert planned - done == trials


def test_a_trial_no_longer_in_the_dataset_is_in_no_table(killed_and_resumed):
    tree, _ = killed_and_resumed
    whole = (tree.path / "config/datasets/tiny.toml").read_text()
    tree.replace("config/datasets/tiny.toml", "trials = 3", "trials = 2")
    trials = "data/tiny/backlog/trials.parquet"
    try:
        tree.snakemake(trials, dataset="tiny").succeeded()
        assert len(pl.read_parquet(tree.path / trials)) == 2
    finally:
        tree.write("config/datasets/tiny.toml", whole)


def test_a_run_shows_its_trials_and_what_went_wrong(tree: Tree):
    """No line of the scheduler's; a failed job with all that its command wrote, and its log."""
    tree.server("refuses", "ok", build="exit 3")
    tree.dataset("tiny", ["null", "refuses"], [100])
    tree.replace(
        "deathmatch/data/tidy.py", "def main(", "def main(given):\n    given.no\n\n\ndef _("
    )
    done = tree.snakemake(POINTS, dataset="tiny")
    text = done.text
    assert done.status
    told = r"^\[\d+:\d\d, (\d) of 2 trials, .+\] backlog \w+ "
    assert re.findall(told, text, re.MULTILINE) == ["1", "2"]
    assert not re.search(r"^(Select jobs|Execute |Finished job|rule \w+:)", text, re.MULTILINE)
    assert text.count("rule tidy failed: ") == 1 and "CalledProcessError" not in text
    assert text.count("has no attribute 'no'") == 1
    log = "build/logs/tidy/tiny/backlog.log"
    assert "rule tidy failed: data/tiny/backlog/trials.parquet" in text and f"log: {log}" in text
    assert "has no attribute 'no'" in (tree.path / log).read_text()
    # Why a server failed is told although the run did not come to its end.
    assert "servers/refuses: not built, in 1 trial:\n" in text
    paper, failed, todo = text.splitlines()[-3:]
    assert paper.startswith("report: none yet") and f"tidy backlog, its log {log}" in failed
    assert todo.startswith("next:   fix the cause in the log")


def test_a_trial_that_is_gone_is_due_whoever_asks_for_its_table(killed_and_resumed):
    """Measured again for the table; the paper alone is made without it."""
    tree, _ = killed_and_resumed
    folder = next(iter(stamps(tree)))
    shutil.rmtree((tree.path / folder).parent)
    planned = to_do(tree)
    assert planned["trial"] == planned["tidy"] == 1
    planned = to_do(tree, "paper")
    assert planned["write_report"] == 1 and "trial" not in planned


def test_a_trial_measured_by_hand_is_due_once_its_server_changes(tree: Tree):
    """Snakemake, which did not make it, does not know of what it was made."""
    tree.server("mine", "ok")
    tree.dataset("tiny", ["mine"], [100])
    path = tree.trials("tiny")["mine", 1].relative_to(tree.path)
    tree.deathmatch("trial", path).succeeded()
    assert "trial" not in to_do(tree)
    assert (tree.path / "data/tiny/.gitignore").read_text() == "*\n"
    source = tree.path / "servers/mine/broken.py"
    source.write_text(source.read_text() + "\n# Changed.\n")
    assert to_do(tree)["trial"] == 1


def test_a_checkout_that_cannot_be_written_to(tree: Tree):
    """No traceback, but what to do, whatever is run."""
    script = 'mount --bind . . && cd "$PWD" && mount -o remount,ro,bind . && exec "$@"'
    enter = [*tree.enter, "unshare", "--mount", "--map-root-user", "sh", "-ec", script, "sh"]
    closed = Tree(tree.path, enter)
    said = closed.snakemake(POINTS, dataset="smoke").failed().text
    assert f"{tree.path}: you may not write here" in said and "clone or copy" in said
    said = closed.deathmatch("new-server", "mine").failed().text
    assert "Read-only file system\n  clone or copy" in said


def test_an_interrupt_leaves_nothing_and_shows_no_traceback(tree: Tree, lock_holders):
    """Control-C reaches the whole foreground group."""
    # The number of the last trial has two digits.
    tree.dataset("tiny", ["null"], [100], duration_s=2 * HUNG_S, trials=10)
    words = ["snakemake", POINTS, "--config", "dataset=tiny"]
    process = tree.start(*words, start_new_session=True)
    wait_for(lambda: descendant(process.pid, "httperf"), "a trial offers load", process)
    below = descendants(process.pid)
    said = tree.snakemake(POINTS, dataset="tiny").failed().text
    # The interpreter's own start may stand before it.
    pid = (tree.path / ".snakemake/deathmatch.pid").read_text().strip()
    assert f"another run of snakemake, pid {pid}, is going on in this checkout" in said
    assert pid.split(" on ")[0] in {str(one.pid) for one in [psutil.Process(process.pid), *below]}
    tree.snakemake("-n", dataset="tiny").succeeded()
    os.killpg(process.pid, signal.SIGINT)
    process.wait(HUNG_S)
    assert process.returncode != 0
    wait_for(lambda: ended(below), f"{below} ended")
    text = process.stdout.read()
    assert lock_holders() == 0 and "Traceback" not in text, text
    assert "nothing; 0 of 10 trials measured, 10 left" in text and " continues where this" in text


def test_a_frozen_dataset_is_read_and_never_measured(tree: Tree):
    tree.dataset("kept", ["null"], [100])
    tree.replace("config/datasets/kept.toml", "seed = 1\n", "seed = 1\nfrozen = true\n")
    for table in dataset.TABLES:
        tree.write(f"data/kept/backlog/{table}.parquet", "")
    text = dry_run(tree, target="all", dataset="kept")
    assert "already measured; only the report on part of the study is made" in text
    planned = jobs(text)
    assert planned["write_report"] == 1 and not {"trial", "tidy", "build"} & set(planned)
    # Without what it names, its paper would be another one.
    file = tree.path / "config/datasets/kept.toml"
    alone = file.read_text()
    file.write_text(alone.replace("seed = 1\n", 'seed = 1\ndecided_by = ["queueing"]\n'))
    said = tree.snakemake("paper", "-n", dataset="kept").failed().text
    assert "data/queueing is missing, and the paper would change without it" in said
    assert "config/datasets/kept.toml, key decided_by: " in said
    assert "git checkout -- data/queueing" in said
    file.write_text(alone)
    # `snakemake paper` is of the committed dataset once there is one, and measures nothing.
    kept = tree.write("config/datasets/reference.toml", alone).parent / "kept.toml"
    kept.unlink()
    tree.write("data/reference/backlog/points.parquet", "")
    said = tree.run("snakemake", "paper", "-n").failed().text
    assert "data/reference: it lacks 4 of the tables that its paper needs, such as data/" in said
    said = tree.snakemake("paper", dataset="smoke").failed().text
    assert re.search(r"data/smoke: none of its \d+ trials is measured", said)
    assert "./shell snakemake --config dataset=smoke\n" in said
    assert not (tree.path / "data/smoke").exists()


def test_a_dry_run_lists_the_matrix_and_says_how_much_there_is(shared_tree: Tree):
    done = shared_tree.snakemake("-n", dataset="smoke", servers="null").succeeded()
    variant = r"^backlog null backlog=128,schedulers=one,somaxconn=4096: 0 of 1 trials$"
    assert re.search(variant, done.text, re.MULTILINE), done.text
    assert re.search(r"^dataset smoke, 1 server: 0 of \d+ trials, about \d+ min left$", done.text,
                     re.MULTILINE)  # fmt: skip
    assert not Path(shared_tree.path, "data/smoke").exists()
