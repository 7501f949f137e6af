"""Snakemake makes only what is due, and a killed run loses and leaves nothing."""

import os
import re
import shutil
import signal

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
    stopped,
    traces,
    wait_for,
)

from deathmatch.plan import dataset

POINTS = "data/tiny/backlog/points.parquet"


def stamps(tree: Tree) -> dict[str, tuple[int, int]]:
    """Return the inode and time of each trial's record, which differ once it is measured again."""
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
    # Stopped, since its trial would otherwise end while the test looks at the run.
    wait_for(lambda: stopped(process.pid, "httperf"), "a second trial offers load", process)
    below = descendants(process.pid)
    spaces = own_network_namespaces(below)
    names = {p.name() for p in below if p.is_running()}
    assert lock_holders() == 1 and len(spaces) == 2 and {"null-server", "httperf"} <= names
    kill(process)
    finished = stamps(tree)
    wait_for(lambda: ended(below), f"all of {names} ended")
    wait_for(lambda: not spaces & network_namespaces(), "its network namespaces are gone")
    # The second trial was ended: one that goes on would leave a record.
    assert stamps(tree) == finished
    noted = {
        "finished": finished, "holders": lock_holders(), "same machine": traces() == machine,
    }  # fmt: skip
    noted["again"] = tree.snakemake(POINTS, "--verbose", dataset="tiny")
    noted["resumed"] = stamps(tree)
    return tree, noted


def test_a_run_resumes_where_a_killed_one_ended(killed_and_resumed):
    """The fixture checks that the processes and namespaces of the killed run ended."""
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
    # On a busy machine, client, testbed or other work may limit each of the three points.
    assert re.search(r"nothing; 3 of 3 trials measured|(client-|own |other work).* of 3", ending[1])
    logs = sorted(tree.path.glob("build/logs/trial/tiny/backlog/null/*/*.log"))
    assert [log.stem for log in logs] == ["1", "2", "3"]
    # A scheduler that looks for jobs each second would take CPU time from trials.
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


def test_a_changed_module_makes_again_what_uses_it(killed_and_resumed):
    """Tables and notebooks that use it, and no trial or build, whatever else has changed."""
    tree, _ = killed_and_resumed
    notebook = "paper/tiny/notebooks/01-backlog.ipynb"
    # Snakemake compares its date, not its content.
    tree.write(notebook, "")
    names = ("load/httperf.py", "paper/charts/c10k.py", "builds/copy.py", "run/study.py")
    files = [tree.path / "deathmatch" / name for name in names]
    before = [(file, file.stat(), file.read_text()) for file in files]
    for file, _, text in before:
        file.write_text(f"{text}\n# Changed.\n")
    planned = to_do(tree, notebook)
    for file, stat, text in before:
        file.write_text(text)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert set(planned) - {"total"} == {"tidy", "notebook"}


def test_changed_sources_and_added_rounds_make_trials_due(killed_and_resumed):
    """The three trials of other sources, and two of added rounds."""
    tree, _ = killed_and_resumed
    changes = [
        ("config/datasets/tiny.toml", "trials = 3", "trials = 5"),
        ("servers/null/null.c", "#define _GNU_SOURCE", "/* */\n#define _GNU_SOURCE"),
    ]
    before = {name: (tree.path / name).read_text() for name, *_ in changes}
    for change in changes:
        tree.replace(*change)
    text = dry_run(tree)
    for name, whole in before.items():
        tree.write(name, whole)
    assert jobs(text)["trial"] == 5
    # The matrix and the time left.
    variant = r"^backlog null backlog=128,schedulers=one,somaxconn=4096: 0 of 5 trials$"
    assert re.search(variant, text, re.MULTILINE), text
    left = r"^dataset tiny, 1 server: 0 of 5 trials, about .+ left$"
    assert re.search(left, text, re.MULTILINE), text


def test_a_run_shows_its_trials_and_what_went_wrong(tree: Tree):
    """No output of the scheduler; the output and the log of a failed job."""
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
    # The reason of a server's failure is reported although the run did not finish.
    assert "servers/refuses: not built, in 1 trial:\n" in text
    paper, failed, todo = text.splitlines()[-3:]
    assert paper.startswith("report: none yet") and f"tidy backlog, its log {log}" in failed
    assert todo.startswith("next:   fix the cause in the log")


def test_a_trial_that_is_gone_is_due_for_its_table(killed_and_resumed):
    """The table needs it measured again; the paper is made without it."""
    tree, _ = killed_and_resumed
    folder = next(iter(stamps(tree)))
    shutil.rmtree((tree.path / folder).parent)
    planned = to_do(tree)
    assert planned["trial"] == planned["tidy"] == 1
    planned = to_do(tree, "paper")
    assert planned["write_report"] == 1 and "trial" not in planned


def test_a_checkout_that_cannot_be_written_to(tree: Tree):
    """Each command prints a remedy and no traceback."""
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
    file = tree.path / "config/datasets/kept.toml"
    alone = file.read_text()
    # `snakemake paper` makes the paper of the committed dataset if there is one.
    kept = tree.write("config/datasets/reference.toml", alone).parent / "kept.toml"
    kept.unlink()
    tree.write("data/reference/backlog/points.parquet", "")
    said = tree.run("snakemake", "paper", "-n").failed().text
    assert "data/reference: it lacks 4 of the tables that its paper needs, such as data/" in said
    said = tree.checked(only_paper=True, dataset="smoke").failed().text
    assert re.search(r"data/smoke: none of its \d+ trials is measured", said)
    assert "./shell snakemake --config dataset=smoke\n" in said
    assert not (tree.path / "data/smoke").exists()
