"""A run removes what a killed one left, and nothing that is in use."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from conftest import ROOT, Tree, first_line, stopped, wait_for

from deathmatch.hosts import cgroup
from deathmatch.run import checkout

SETTINGS = {1: {"memory.limit_in_bytes": 200_000_000}, 2: {"memory.max": 200_000_000}}
# It makes a group, says where, and waits; it ends with its input.
MAKE = (
    "import sys; from deathmatch.hosts import cgroup, opening\n"
    "from deathmatch.agent.keeper import Settings\n"
    "host = opening.through('maker', [], Settings(sys.argv[1], lock=False))\n"
    f"print(cgroup.make(host, 'memory', {SETTINGS}).folder, flush=True); input()"
)


def test_a_group_goes_with_the_next_one_unless_somebody_holds_it(here, tmp_path):
    words = [sys.executable, "-c", MAKE, str(tmp_path)]
    maker = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd=ROOT,
    )  # fmt: skip
    folder = Path(first_line(maker).strip())
    if not folder.name:
        pytest.skip(f"no cgroup can be made here: {maker.communicate()[1][-300:]}")
    assert folder.is_dir()
    cgroup.make(here, "memory", SETTINGS).remove()
    assert folder.is_dir(), "it has no member, and is held"
    maker.kill()
    maker.communicate()
    assert folder.is_dir(), "nobody was there to remove it"

    def removed() -> bool:
        cgroup.make(here, "memory", SETTINGS).remove()
        return not folder.exists()

    wait_for(removed, "its holder, the agent, has ended too")


def test_temporary_files_of_a_killed_run_go_with_the_next_one(tmp_path, monkeypatch):
    for name in ("TMPDIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.setattr(tempfile, "tempdir", None)
    made = checkout.keep_temporary(tmp_path)
    left = Path(tempfile.mkdtemp())
    assert left.parent == made == Path(os.environ["TMPDIR"])
    tempfile.tempdir = str(tmp_path)
    again = checkout.keep_temporary(tmp_path)
    assert again != made and again.is_dir() and not made.exists()


def test_an_interrupt_while_modules_load_ends_a_command_silently(tmp_path):
    """Whenever it comes: pydantic would print it, and go on."""
    for number in range(4):
        process = subprocess.Popen(
            [sys.executable, "-m", "deathmatch", "trial", "data/smoke/none"], cwd=ROOT,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        maps = Path(f"/proc/{process.pid}/maps")
        wait_for(lambda: "pydantic_core" in maps.read_text(), "it loads", process)  # noqa: B023
        time.sleep(0.08 * number)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate()
        assert process.returncode in (-signal.SIGINT, 130, 1), said
        assert "Traceback" not in said and "KeyboardInterrupt" not in said, said
        assert "does not match" not in said, said


def test_a_build_that_is_killed_is_no_verdict(shared_tree: Tree):
    """Whether its shell is killed, or a compiler below that."""
    tree = shared_tree
    for name, build in (("shot", "kill -9 $$"), ("starved", "sh -c 'kill -9 $$'; exit $?")):
        tree.server(name, "ok", build=build)
        said = tree.deathmatch("build", name).failed().text
        assert f"servers/{name}: the build was killed (SIGKILL) at: " in said
        assert "run again to build it again" in said
        assert not (tree.path / "build" / "servers" / name / "build.json").exists()


def test_a_trial_whose_load_generator_is_killed_is_not_measured(shared_tree: Tree):
    tree = shared_tree
    tree.dataset("tiny", ["null"], [100], duration_s=5)
    path = "data/tiny/backlog/null/backlog=128,schedulers=one,somaxconn=4096/1"
    process = tree.start("python", "-m", "deathmatch", "trial", path)
    wait_for(lambda: stopped(process.pid, "httperf"), "it offers load", process).kill()
    said, _ = process.communicate()
    assert process.returncode == 1 and "Traceback" not in said, said
    assert "the load generator httperf was killed on client\n  run again, and it is meas" in said
    assert not (tree.path / path / "trial.json").exists()


def test_one_run_at_a_time_has_the_checkout(shared_tree: Tree):
    """The lock of a run that was killed holds nobody, that of another one does."""
    script = (
        "from deathmatch.run import checkout; import signal\n"
        "checkout.hold(); print('held', flush=True); signal.pause()"
    )
    first = shared_tree.start("python", "-c", script)
    assert first_line(first) == "held\n"
    second = shared_tree.run("python", "-c", script)
    assert second.status and "another run of snakemake, pid " in second.text
    assert "wait until it ends" in second.text
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    again = shared_tree.start("python", "-c", script)
    assert first_line(again) == "held\n"
    again.kill()
    again.wait()
