"""A cluster: real SLURM on three nodes that share files with who logs in, and nothing else."""

import json
import re
import runpy
import signal

import pytest
import slurm
from conftest import AS_ROOT, HUNG_S, ROOT, Tree, copy_tree, kill, wait_for

from deathmatch.errors import UserError
from deathmatch.hosts import hardware
from deathmatch.run import cluster, sittings

PLUGIN = ROOT / "workflow" / "plugins" / "snakemake_logger_plugin_deathmatch"
PROFILE = ("--profile", "profiles/slurm")
TRIAL = "data/tiny/backlog/null/backlog=128,schedulers=one,somaxconn=4096"

needs_slurm = pytest.mark.skipif(
    not AS_ROOT or not slurm.UNPACKED.is_dir(), reason="as root, with SLURM that ./shell unpacks"
)


def beats(said: list[str], silence_s: float, age_s: float = 0) -> tuple[str, float]:
    """Return why and when a run with these heartbeats, one a second, is taken for gone."""
    now = [0.0]
    words = iter(said)

    def sleep(seconds: float) -> None:
        now[0] += seconds

    why = cluster.wait_for_end(
        lambda: next(words, said[-1]), "mine", 1, silence_s, age_s, lambda: now[0], sleep
    )
    return why, now[0]


def test_a_job_ends_when_its_run_is_silent_for_long_or_another_begins():
    why, at_s = beats([f"mine {n}" for n in range(50)], silence_s=10)
    assert "silent for 10 s" in why and 59 <= at_s <= 61
    # A heartbeat that cannot be read for a while is no end.
    _, at_s = beats(["mine 1", *[""] * 8, "mine 2", "mine 3"], silence_s=10)
    assert 20 <= at_s <= 22
    why, at_s = beats(["mine 1", "mine 2", "other 0"], silence_s=10)
    assert "another run" in why and at_s <= 2
    # A job that waited for longer than its run lived.
    assert beats(["mine 7"], silence_s=10, age_s=100)[1] <= 1


def test_only_jobs_of_this_checkout_are_cancelled():
    queue = (
        "1|deathmatch_a|/here\n2|deathmatch_b|/there\n3|mine|/here\n4|deathmatch_a|/here/below\n\n"
    )
    assert cluster.left(queue, cluster.Path("/here")) == ["1"]


def test_a_node_reads_which_job_it_is_to_do():
    split = runpy.run_path(str(PLUGIN / "targets.py"))["split"]
    expected = {"server": "null", "variant": "a=1,b=2", "n": "1"}
    assert split('trial:server=null,variant="a=1,b=2",n=1') == ("trial", expected)
    assert split("trial:variant=a=1,n=2") == ("trial", {"variant": "a=1", "n": "2"})
    assert split("write_paper:") == ("write_paper", {})


def machine(n: int = 1, **other) -> dict:
    of = {"cpu": "A", "kernel": "6.1", "cpus": 64, "memory_bytes": 256_000_000_000, "os": "Debian"}
    return {"experiment": "backlog", "n": n, "server": "null", "machine": of | other}


def test_two_kinds_of_machine_are_not_mixed_in_a_round():
    """A small difference in memory makes no other kind."""
    one, where, here = machine(), "data/smoke/backlog/null/default/1", "this machine now"
    sittings.check_machine("smoke", [(where, one), (here, machine(memory_bytes=255_700_000_000))])
    with pytest.raises(UserError, match="two kinds of machine would be mixed: cpu") as refused:
        sittings.check_machine("smoke", [(where, one), (here, machine(cpu="B"))])
    said = str(refused.value)
    assert f"A   ({where})" in said and f"B   ({here})" in said
    assert "rm -r data/smoke/backlog/*/*/1" in said
    with pytest.raises(UserError, match="mixed: kernel"):
        sittings.check_machine("smoke", [(where, one), (here, machine(kernel="6.2"))])
    # Another round may have another machine.
    sittings.check_machine("smoke", [(where, one), (here, machine(2, cpu="B"))])


def test_a_node_of_other_packages_builds_nothing_again(tree: Tree):
    """The builds may be in use on another node."""
    tree.dataset("tiny", ["null"], [100])
    tree.deathmatch("build", "null").succeeded()
    built = tree.path / "build" / "servers" / "null"
    for file in (built / "build.json", built / "built.json"):
        record = json.loads(file.read_text())
        record["tools"]["gcc"] = "gcc 1.0"
        file.write_text(json.dumps(record))
    stamp = (built / "built.json").stat().st_ino
    tree.environment[hardware.RUN] = "mine"
    done = tree.deathmatch("trial", f"{TRIAL}/1").failed()
    assert "servers/null: built on a node where gcc is gcc 1.0, and here it is" in done.text
    assert (built / "built.json").stat().st_ino == stamp


@pytest.fixture(scope="module")
def nodes():
    yield from slurm.make()


@pytest.fixture(scope="module")
def logged_in(nodes, tmp_path_factory) -> Tree:
    return Tree(copy_tree(tmp_path_factory.mktemp("cluster") / "tree"), nodes.login)


def loads(nodes: slurm.Cluster) -> int:
    """Return on how many nodes a load generator runs."""
    return nodes.running().count("httperf")


@needs_slurm
@pytest.mark.slurm
def test_a_node_measures_a_trial_and_has_no_other_meanwhile(nodes, logged_in):
    logged_in.dataset("tiny", ["null"], [100], duration_s=2)
    words = [f"{TRIAL}/1/trial.json", *PROFILE, "--config", "dataset=tiny"]
    process = logged_in.start("snakemake", *words)
    wait_for(lambda: loads(nodes), "a node offers load", process)
    job = nodes.slurm("scontrol", "show", "job", nodes.jobs()[0])
    text, _ = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, text
    record = json.loads((logged_in.path / TRIAL / "1/trial.json").read_text())
    assert record["outcome"] == "measured"
    assert "1 of 1 trials, all measured] backlog null" in text
    assert "Traceback" not in text and "No SLURM account" not in text
    assert "OverSubscribe=NO" in job and "NumNodes=1" in job
    assert f"NumCPUs={record['machine']['cpus']} " in job
    wait_for(lambda: idle(nodes), "nothing is left on a node")


@pytest.fixture
def long(nodes, logged_in):
    """A run that measures for ten minutes on each node."""
    logged_in.dataset("long", ["null"], [100], duration_s=2 * HUNG_S, trials=5)
    words = ["snakemake", "data/long/backlog/points.parquet", *PROFILE, "--config", "dataset=long"]
    process = logged_in.start(*words)
    wait_for(lambda: loads(nodes) == 3 and len(nodes.jobs()) == 5, "each offers load", process)
    return process


def idle(nodes: slurm.Cluster) -> bool:
    return not nodes.jobs() and not nodes.running()


@needs_slurm
@pytest.mark.slurm
def test_a_killed_controller_leaves_nothing(long, nodes, logged_in):
    """Neither running nor waiting jobs."""
    kill(long)
    wait_for(lambda: idle(nodes), "the nodes are idle")
    assert not list(logged_in.path.glob("data/long/**/trial.json"))


@needs_slurm
@pytest.mark.slurm
def test_the_next_run_ends_what_a_killed_one_left(long, nodes, logged_in):
    kill(long)
    logged_in.dataset("tiny", ["null"], [100], duration_s=1, trials=2)
    done = logged_in.snakemake(f"{TRIAL}/2/trial.json", *PROFILE, dataset="tiny").succeeded()
    assert "ending 5 jobs of a run that was killed" in done.text
    wait_for(lambda: idle(nodes), "the nodes are idle")


@needs_slurm
@pytest.mark.slurm
def test_cancelled_trials_are_due_again(long, nodes, logged_in):
    nodes.slurm("scancel", *nodes.jobs())
    text, _ = long.communicate(timeout=HUNG_S)
    assert long.returncode != 0 and text.count("rule trial failed") == 5, text
    wait_for(lambda: idle(nodes), "the nodes are idle")
    again = logged_in.snakemake("-n", *PROFILE, dataset="long").succeeded()
    assert "0 of 5 trials" in again.text


@needs_slurm
@pytest.mark.slurm
def test_an_interrupt_cancels_what_runs(long, nodes):
    long.send_signal(signal.SIGINT)
    text, _ = long.communicate(timeout=HUNG_S)
    assert "Traceback" not in text and "continues where this run stopped" in text, text
    wait_for(lambda: idle(nodes), "the nodes are idle")


@needs_slurm
@pytest.mark.slurm
def test_smoke_of_one_server_to_the_paper(nodes, logged_in):
    done = logged_in.snakemake(*PROFILE, dataset="smoke", servers="null").succeeded()
    assert re.search(r"\b(\d+) of \1 trials, all measured", done.text)
    assert (logged_in.path / "paper/smoke/report.html").is_file()
    assert (logged_in.path / "paper/smoke/report.pdf").is_file()
