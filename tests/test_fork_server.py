"""The fork server of a run: a fork does what the command would, and ends as it would."""

import contextlib
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from conftest import HUNG_S, STARTED, Tree, descendants, ended, first_line, matching, wait_for

# A run of Snakemake that does nothing but hold its fork server.
RUN = (
    "import os, sys, time\nfrom pathlib import Path\nfrom deathmatch.run import forks\n"
    "forks.begin(Path(sys.argv[1]))\nprint(os.environ.get(forks.ADDRESS, ''), flush=True)\n"
    "time.sleep(3600)"
)


@pytest.fixture
def tree(shared_tree: Tree) -> Tree:
    """The shared copy; its commands know of no fork server yet."""
    return Tree(shared_tree.path, shared_tree.enter)


@contextlib.contextmanager
def serving(tree: Tree, folder: Path):
    """Give a process that has begun a fork server; the tree's commands know of it."""
    process = tree.start("python", "-c", RUN, folder)
    # It serves more tests than one.
    STARTED.remove(process)
    tree.environment["DEATHMATCH_FORK_SERVER"] = first_line(process).strip()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.fixture
def run(tree: Tree, tmp_path: Path):
    """A process whose fork server may be ended."""
    with serving(tree, tmp_path) as process:
        yield process


@pytest.fixture(scope="module")
def kept(shared_tree: Tree, tmp_path_factory):
    """A process whose fork server goes on, for the commands of `shared_tree`."""
    with serving(shared_tree, tmp_path_factory.mktemp("kept")) as process:
        yield process


def server_of(run: subprocess.Popen) -> psutil.Process:
    children = wait_for(lambda: psutil.Process(run.pid).children(), "the fork server runs")
    return children[0]


def ask(tree: Tree, run) -> tuple[subprocess.Popen, list[psutil.Process]]:
    """Ask for a build; return the process that asked, and those of the fork that builds."""
    tree.server("slow", "ordinary", build="sleep 3600")
    asking = tree.start("bin/forked", "build", "slow")

    def sleeping() -> list[psutil.Process]:
        """Return the processes once the build's last one has begun; none before."""
        processes = descendants(server_of(run).pid)
        return processes if matching(processes, "sleep") else []

    return asking, wait_for(sleeping, "the build sleeps", asking)


def test_a_fork_is_the_command(shared_tree: Tree, kept):
    """Its output, its exit status, its errors, its folder and its environment."""
    tree = shared_tree
    for command in ["check", "nothing"], ["nonsense"], ["list", "--help"]:
        forked, alone = tree.run("bin/forked", *command), tree.run("bin/deathmatch", *command)
        assert forked == alone
    elsewhere = tree.run("sh", "-c", "cd servers && ../bin/forked check nothing")
    assert elsewhere == tree.run("bin/forked", "check", "nothing")
    # Many at once; and where no server answers, the command runs all the same.
    several = [tree.start("bin/forked", "list", "datasets") for _ in range(4)]
    texts = {process.communicate(timeout=HUNG_S)[0] for process in several}
    without = Tree(tree.path, tree.enter, {"DEATHMATCH_FORK_SERVER": "gone"})
    assert texts == {without.run("bin/forked", "list", "datasets").succeeded().text}
    wait_for(lambda: not server_of(kept).children(), "no fork is left")


def test_a_folder_of_a_long_name(tree: Tree, tmp_path):
    """No socket can have such a path."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    process = tree.start("python", "-c", RUN, folder)
    assert first_line(process) == "\n"
    assert not psutil.Process(process.pid).children()
    process.kill()
    process.wait()


def test_the_server_is_killed(tree: Tree, run):
    asking, processes = ask(tree, run)
    server_of(run).kill()
    assert asking.wait(HUNG_S) == 1
    assert "fork server ended; run again" in asking.stdout.read()
    wait_for(lambda: ended(processes), "the command ended")


def test_the_run_is_killed(tree: Tree, run):
    asking, processes = ask(tree, run)
    server = server_of(run)
    run.kill()
    wait_for(lambda: ended([server, *processes]), "the server and its fork ended")
    assert asking.wait(HUNG_S) == 1


def test_the_run_is_killed_before_its_server_has_begun(tree: Tree, tmp_path):
    """Whoever is the server's parent then is not the run."""
    at_once = RUN.replace("time.sleep(3600)", "os.kill(os.getpid(), 9)")
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        process = tree.start("python", "-c", at_once, folder)
        # The server, too, holds the output open until it ends.
        process.communicate(timeout=HUNG_S)


def test_an_interrupt_while_the_server_begins_is_not_the_server_s(tree: Tree, tmp_path):
    """A terminal sends it to every process of the run's group."""
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        process = tree.start("python", "-c", RUN, folder, start_new_session=True)
        assert first_line(process)
        (server,) = psutil.Process(process.pid).children()
        server.send_signal(signal.SIGINT)
        tree.environment["DEATHMATCH_FORK_SERVER"] = str(folder / "forks")
        # The run is to end: no command begins any more.
        assert "fork server ended" in tree.run("bin/forked", "nonsense").failed().text
        assert server.is_running()
        process.kill()
        assert "Traceback" not in process.communicate(timeout=HUNG_S)[0]


def test_an_interrupt_is_the_command_s_which_ends_with_who_asked(shared_tree: Tree, kept):
    asking, processes = ask(shared_tree, kept)
    command = next(process for process in processes if process.ppid() == server_of(kept).pid)
    command.send_signal(signal.SIGINT)
    assert asking.wait(HUNG_S) == 130
    wait_for(lambda: ended(processes), "the command ended")
    asking, processes = ask(shared_tree, kept)
    asking.kill()
    asking.wait(HUNG_S)
    wait_for(lambda: ended(processes), "the command ended")
    assert server_of(kept).is_running()


NOTEBOOK = """\
---
jupytext: {{text_representation: {{extension: .md, format_name: myst}}}}
kernelspec: {{display_name: Python 3, language: python, name: python3}}
---

```{{code-cell}} ipython3
:tags: [parameters]

dataset = ""
```

```{{code-cell}} ipython3
import os, time
from pathlib import Path

{cell}
```
"""


def notebook(tree: Tree, name: str, cell: str) -> list[str]:
    """Write a notebook with one cell; return the words that run it."""
    (tree.path / "notebooks" / f"{name}.md").write_text(NOTEBOOK.format(cell=cell))
    return ["bin/forked", "notebook", f"notebooks/{name}.md", "--dataset", "quick", "--out", name]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("raise ValueError('no such thing')", "ValueError: no such thing"),
        ("os._exit(3)", "the process that runs the cells ended"),
    ],
)
def test_a_cell_that_fails(shared_tree: Tree, kept, cell, said):
    failed = shared_tree.run(*notebook(shared_tree, "failing", cell))
    assert failed.status == 1
    assert said in failed.text
    assert "Traceback" not in failed.text
    wait_for(lambda: not server_of(kept).children(), "no fork is left")


@pytest.mark.parametrize("end", ["interrupt", "kill"])
def test_a_notebook_that_is_ended(tree: Tree, run, end):
    (tree.path / "begun").unlink(missing_ok=True)
    asking = tree.start(*notebook(tree, "slow", "Path('begun').touch()\ntime.sleep(3600)"))
    wait_for((tree.path / "begun").exists, "the cell has begun", asking)
    server = server_of(run)
    processes = descendants(server.pid)
    if end == "kill":
        run.kill()
    else:
        server.children()[0].send_signal(signal.SIGINT)
    wait_for(lambda: ended(processes), "the notebook and its kernel ended")
    assert asking.wait(HUNG_S)
