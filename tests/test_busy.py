"""`run.busy`: who else uses the CPUs, and how long one waits for them."""

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


def test_who_is_busy_is_named_and_waited_for_for_a_while(stranger: int):
    said: list[str] = []
    busy.wait(said.append, 3, window_s=0.2)
    first, last = said
    # On a machine that runs other tests this one need not be among the first.
    who = r"\d+ % of the CPUs: (\d+ % by pid|by processes that cannot be seen)"
    assert re.match(f"waits for a quiet machine, at most 3 s; now it is busy: {who}", first)
    assert re.match(f"continues, though the machine is busy, which distorts .*: {who}", last)


def test_snakemake_looks_before_it_begins(stranger: int, tree: Tree):
    tree.server("one", "ok")
    tree.dataset("tiny", ["one"], [100])
    target = "data/tiny/backlog/one/somaxconn=4096/1/trial.json"
    said = tree.snakemake(target, dataset="tiny").succeeded().text
    told = "this run continues, though the machine is busy, which distorts the results: "
    assert said.index(told) < said.index("1 of 1 trials")


def test_what_this_process_started_is_no_other():
    with subprocess.Popen(SPIN) as child:
        try:
            seen = busy.look(0.5)
        finally:
            child.kill()
    assert f"pid {child.pid} " not in seen
