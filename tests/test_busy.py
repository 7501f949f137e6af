"""`run.busy`: other processes that use the CPUs, and how long a run waits; how a run begins."""

import json
import os
import re
import subprocess
import sys

import pytest
from conftest import Tree

from deathmatch.run import busy

SPIN = [sys.executable, "-c", "while True: pass"]


@pytest.fixture
def stranger():
    """A busy process that is no child of this one; its pid."""
    # The shell ends at once, so that the process is another's child.
    shell = ["sh", "-c", '"$@" >&- & echo $!', "sh", *SPIN]
    pid = int(subprocess.run(shell, stdout=subprocess.PIPE, text=True).stdout)
    yield pid
    os.kill(pid, 9)


def test_a_busy_process_is_named_and_waited_for(stranger: int):
    said: list[str] = []
    busy.wait(said.append, 3, window_s=0.2)
    first, last = said
    # On a machine that runs other tests this one need not be among the first.
    who = r"\d+ % of the CPUs: (\d+ % by pid|by processes that cannot be seen)"
    assert re.match(f"waits for a quiet machine, at most 3 s; now it is busy: {who}", first)
    assert re.match(f"continues, though the machine is busy, which distorts .*: {who}", last)


def test_a_run_looks_before_it_begins_and_begins_with_the_longest_build(stranger: int, tree: Tree):
    for name in ("a", "b", "z"):
        tree.server(name, "ok")
    tree.dataset("tiny", ["a", "b", "z"], [100])
    tree.write("build/servers/b/built.json", json.dumps({"wall_us": 77_000_000}))
    builds = [f"build/servers/{name}/build.json" for name in ("a", "b", "z")]
    trial = "data/tiny/backlog/a/somaxconn=4096/1/trial.json"
    # One at a time, so that they end in the order in which they begin.
    said = tree.snakemake(*builds, trial, "--cores=1", dataset="tiny").succeeded().text
    told = "this run continues, though the machine is busy, which distorts the results: "
    assert said.index(told) < said.index("1 of 3 trials")
    ended = sorted(builds, key=lambda build: (tree.path / build).stat().st_mtime_ns)
    assert ended[0] == builds[1]
    assert json.loads((tree.path / builds[0]).read_text())["wall_us"] > 0


def test_own_children_are_no_other_load():
    with subprocess.Popen(SPIN) as child:
        try:
            seen = busy.look(0.5)
        finally:
            child.kill()
    assert f"pid {child.pid} " not in seen
