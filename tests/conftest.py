"""Shared by the tests: copies of the project to measure in, and a network namespace of their own.

The tests run the study's own commands on real servers. A copy has the same files, links to no
data, and is thrown away; the namespace keeps the tests' trials from waiting for the testbed of a
measurement that is going on.
"""

import contextlib
import functools
import importlib.util
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import hypothesis
import polars as pl
import psutil
import pytest
from side_by_side import (  # noqa: F401
    pytest_collection_modifyitems,
    pytest_runtest_protocol,
    pytest_xdist_auto_num_workers,
)

from deathmatch.agent.keeper import Settings
from deathmatch.data import sittings, table_files, tables
from deathmatch.errors import UserError
from deathmatch.hosts import opening
from deathmatch.plan import files

ROOT = Path(__file__).resolve().parent.parent
BROKEN = ROOT / "tests" / "servers" / "broken.py"
# The small dataset that tests of code read; tests/cut_miniature.py of commit 7df4d3c3 cut it.
MINIATURE = ROOT / "tests" / "data" / "miniature"
SANDBOXED = """import os, sys
from deathmatch.hosts import sandbox
sys.exit(sandbox.call(lambda: os.execvp(sys.argv[1], sys.argv[1:])))"""
# What each run of Snakemake checks before its first job.
CHECKED = """import json, sys
from deathmatch import errors
from deathmatch.run import cli_config
config, only_paper = json.loads(sys.argv[1])
settings = cli_config.settings(cli_config.check_file() | config)
errors.run_main(lambda: print(cli_config.study(settings, only_paper).summary()))"""
AS_ROOT = os.geteuid() == 0
# Words before a command that ends with this process; options to enter namespaces without root.
DYING = ["setpriv", "--pdeathsig", "KILL", "--"]
INSIDE = [] if AS_ROOT else ["--user", "--preserve-credentials"]
# Tests run side by side: nobody waits for a quiet machine.
os.environ["DEATHMATCH_WAIT_S"] = "0"
STARTED: list[subprocess.Popen] = []
# Nor is an example of hypothesis late because others work.
hypothesis.settings.register_profile("any load", deadline=None)
hypothesis.settings.load_profile("any load")
# A command that prints nothing for so long hangs; it is no limit for a slow one.
HUNG_S = 300


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the fuzz tests unless they are asked for: their imports take seconds."""
    unasked = "not fuzz" in config.option.markexpr
    return True if unasked and collection_path.name == "fuzz" else None


@pytest.fixture(scope="session")
def here(tmp_path_factory):
    """This machine as a host: what it starts is in a pid namespace of its own."""
    settings = Settings(str(tmp_path_factory.mktemp("agent")), HUNG_S, lock=False)
    with opening.through("here", [], settings) as host:
        yield host


@pytest.fixture(scope="session")
def miniature() -> Iterator[str]:
    """The name by which this process finds MINIATURE, as it finds a dataset of data/."""
    name, table_path, spec_path = MINIATURE.name, table_files.path_of, files.path_of

    def path_of(dataset: str, experiment: str, table: str) -> Path:
        if dataset == name:
            return MINIATURE / experiment / f"{table}.parquet"
        return table_path(dataset, experiment, table)

    def spec_of(kind: str, asked: str, root: Path = ROOT) -> Path:
        own = (kind, asked, root) == ("dataset", name, ROOT)
        return MINIATURE.with_suffix(".toml") if own else spec_path(kind, asked, root)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_files, "path_of", path_of)
        patch.setattr(files, "path_of", spec_of)
        yield name


def bench(name: str) -> ModuleType:
    """Return a script of bench/ as a module."""
    specification = importlib.util.spec_from_file_location(
        f"bench_{name}", ROOT / "bench" / f"{name}.py"
    )
    script = importlib.util.module_from_spec(specification)
    # Dataclasses look their module up there.
    sys.modules[specification.name] = script
    specification.loader.exec_module(script)
    return script


def read_tables_anew() -> None:
    """Forget tables that were read: their files have changed."""
    from deathmatch.analysis import by_trial, selecting

    selecting._clear_tables()
    by_trial._summary.cache_clear()


@contextlib.contextmanager
def instead(given: dict[tuple[str, str, str], pl.DataFrame]) -> Iterator[None]:
    """Replace tables, by (dataset, experiment, table); their datasets have no other tables."""
    of_datasets, read = {dataset for dataset, _, _ in given}, tables.read

    def planted(*key: str) -> pl.DataFrame:
        if key[0] in of_datasets and key not in given:
            raise UserError("the table is not planted", "/".join(key))
        return given[key] if key in given else read(*key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "read", planted)
        read_tables_anew()
        yield
    read_tables_anew()


@functools.cache
def project_files() -> list[Path]:
    """Return every file of the project, committed or about to be, relative to ROOT."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    paths = sorted({Path(name) for name in listed.split("\0") if name})
    return [path for path in paths if (ROOT / path).is_file()]


@dataclass
class Done:
    """An ended command: its exit status and all that it printed."""

    status: int
    text: str

    def succeeded(self) -> "Done":
        assert self.status == 0, self.text
        return self

    def failed(self) -> "Done":
        """A clear failure: not zero, and no traceback."""
        assert self.status != 0, self.text
        assert "Traceback" not in self.text, self.text
        return self


@dataclass
class Tree:
    """A copy of the project; `enter` are the words before every command run in it."""

    path: Path
    enter: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    def command(self, *words: str | Path) -> list[str]:
        return [*self.enter, *map(str, words)]

    def start(self, *words: str | Path, **options) -> subprocess.Popen:
        # Snakemake finds its logger there.
        plugins = {"PYTHONPATH": str(self.path / "workflow" / "plugins")}
        process = subprocess.Popen(
            self.command(*words), cwd=self.path, env=os.environ | plugins | self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, **options,
        )  # fmt: skip
        STARTED.append(process)
        return process

    def run(self, *words: str | Path, timeout_s: float = HUNG_S) -> Done:
        """Run a command to its end; `timeout_s` is how long it may print nothing."""
        process, text = self.start(*words), b""
        pipe = process.stdout.fileno()
        while select.select([pipe], [], [], timeout_s)[0]:
            if not (printed := os.read(pipe, 65536)):
                return Done(process.wait(timeout_s), text.decode())
            text += printed
        for one in [*descendants(process.pid), process]:
            one.kill()
        pytest.fail(f"{words} printed nothing for {timeout_s} s, after:\n{text.decode()}")

    def deathmatch(self, command: str, *words: str | Path, timeout_s: float = HUNG_S) -> Done:
        return self.run("python", "-m", "deathmatch", command, *words, timeout_s=timeout_s)

    def sandboxed(self, *words: str | Path, timeout_s: float = HUNG_S) -> Done:
        """Run a command as a trial is run: in the sandbox, under the testbed's lock."""
        return self.run("python", "-c", SANDBOXED, *words, timeout_s=timeout_s)

    def snakemake(self, *words: str, timeout_s: float = HUNG_S, **config: str) -> Done:
        settings = [f"{key}={value}" for key, value in config.items()]
        return self.run(
            "snakemake", *words, *(["--config", *settings] if settings else []),
            timeout_s=timeout_s,
        )  # fmt: skip

    def checked(self, only_paper: bool = False, **config: str) -> Done:
        """Check a configuration as Snakemake's runs do, without starting Snakemake."""
        return self.run("python", "-c", CHECKED, json.dumps([config, only_paper]))

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.path / name).read_text()
        assert text.count(old) == 1, (name, old)
        self.write(name, text.replace(old, new))

    def replace_all(self, name: str, old: str, new: str) -> None:
        self.write(name, (self.path / name).read_text().replace(old, new))

    def dataset(
        self, name: str, servers: list[str], rates_rps: list[int], duration_s: float = 0.5,
        trials: int = 1, levels: str = "", experiment: str = "backlog",
    ) -> None:  # fmt: skip
        """Write the file of a dataset that has one experiment, with one grid."""
        self.write(
            f"config/datasets/{name}.toml",
            f'title = "a test"\ntrials = {trials}\nseed = 1\n\n[experiments.{experiment}]\n'
            f"rates_rps = {rates_rps}\nduration_s = {duration_s}\n\n"
            f"[[experiments.{experiment}.grids]]\nservers = {servers}\n{levels}\n",
        )

    def server(self, name: str, mode: str, **keys: str | int) -> None:
        """Add a server that runs tests/servers/broken.py in one of its modes."""
        shutil.copy(BROKEN, self.write(f"servers/{name}/broken.py", ""))
        keys = {
            "title": name, "language": "Python", "source": "ours", "about": "A test.",
            "version": "echo 1", "run": f"python3 {{folder}}/broken.py {mode} {{host}} {{port}}",
        } | keys  # fmt: skip
        lines = [f"{key} = {value!r}" for key, value in keys.items()]
        self.write(
            f"servers/{name}/server.toml", "\n".join(lines) + '\nexperiments = ["backlog"]\n'
        )

    def never_client_limited(self) -> None:
        """Let no point of httperf's count as client-limited: only others are drawn.

        On a busy machine each point of a short trial is.
        """
        self.replace(
            "deathmatch/load/httperf.py",
            "return late or starved > 0 or (share is not None and share < CPU_SHARE_PERCENT)",
            "return False",
        )

    def briefly(self) -> None:
        """Let `measure` and `try` offer each rate for a second, and search for two.

        Such a search is refused; test_overload.py has one that ends.
        """
        design = "deathmatch/plan/measure_design.py"
        self.replace(design, '"most_s": 45', '"most_s": 2')
        self.replace("deathmatch/plan/dataset.py", "most_s: Annotated[float, Field(ge=10,",
                     "most_s: Annotated[float, Field(ge=2,")  # fmt: skip
        self.replace(design, "DURATION_S, OPENING_S = 2,", "DURATION_S, OPENING_S = 1,")

    def miniature(self, name: str = MINIATURE.name, experiments: Iterable[str] = ("*",)) -> None:
        """Plant MINIATURE, or some experiments of it, as a dataset that was measured."""
        for experiment in experiments:
            for folder in MINIATURE.glob(f"{experiment}/"):
                shutil.copytree(folder, self.path / "data" / name / folder.name)
        shutil.copy(MINIATURE / sittings.NAME, self.path / "data" / name)
        shutil.copy(MINIATURE.with_suffix(".toml"), self.path / f"config/datasets/{name}.toml")

    def trials(self, dataset: str) -> dict[tuple[str, int], Path]:
        """Return {(server, n): folder} of a dataset that has one variant of each server."""
        script = (
            "import sys; from deathmatch.plan import matrix\n"
            "for t in matrix.trials(sys.argv[1]): print(t.server.name, t.n, t.path)"
        )
        lines = self.run("python", "-c", script, dataset).succeeded().text.splitlines()
        words = [line.split() for line in lines]
        found = {(server, int(n)): self.path / path for server, n, path in words}
        assert len(found) == len(lines)
        return found


def copy_tree(to: Path) -> Path:
    """Copy the project's files, without what was measured and made of it; return the copy."""
    measured = {name.split("/")[0] for name in table_files.measured()}
    left_out = {("tests", "data"), *(("data", dataset) for dataset in measured)}
    names = [
        name for name in project_files()
        if name.parts[1:2] != ("reference",) and name.parts[:2] not in left_out
    ]  # fmt: skip
    to.mkdir(parents=True, exist_ok=True)
    words = ["cp", "--parents", "--preserve=mode,timestamps", "--", *names, to.absolute()]
    subprocess.run(words, cwd=ROOT, check=True)
    return to


@pytest.fixture(scope="session", autouse=True)
def tools() -> None:
    """The tests need the study's tools."""
    missing = [tool for tool in ("httperf", "snakemake", "ss", "ip") if not shutil.which(tool)]
    if missing:
        pytest.exit(f"no {', '.join(missing)} on PATH: run ./shell pytest", returncode=2)


@pytest.fixture(autouse=True)
def end_what_a_test_left():
    """A test that fails midway must not hold the lock for those after it."""
    yield
    while STARTED:
        kill(STARTED.pop())


@contextlib.contextmanager
def kept(*namespaces: str, first: str = "true") -> Iterator[subprocess.Popen]:
    """A process in new namespaces, with unshare's options, where the command `first` has run."""
    script = f"{first} && echo ready && exec sleep infinity"
    words = [*DYING, "unshare", *namespaces, "sh", "-c", script]
    keeper = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert first_line(keeper) == "ready\n"
    try:
        yield keeper
    finally:
        kill(keeper)


def kill(*processes: subprocess.Popen) -> None:
    """Kill with SIGKILL and wait for these processes only, not for what else holds their output."""
    for process in processes:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stdin):
            if pipe:
                pipe.close()


@pytest.fixture(scope="session")
def network():
    """Words that run a command in a network namespace of the tests' own, with a loopback."""
    user = [] if AS_ROOT else ["--user", "--map-current-user", "--keep-caps"]
    with kept(*user, "--net", first="ip link set lo up") as keeper:
        yield ["nsenter", "--net", "--target", str(keeper.pid), *INSIDE, "--"]


@pytest.fixture(scope="session")
def lock_holders(network):
    """A function that counts the processes that hold or await the testbed's lock in `network`."""
    pid = network[network.index("--target") + 1]

    def count() -> int:
        return Path(f"/proc/{pid}/net/unix").read_text().count("@deathmatch-testbed")

    return count


@pytest.fixture
def tree(tmp_path, network) -> Tree:
    """A fresh copy of the project."""
    return Tree(copy_tree(tmp_path / "tree"), network)


def unprivileged(folder: Path) -> list[str]:
    """Return words that run a command as an ordinary user, to whom `folder` will belong."""
    if not AS_ROOT:
        return []
    # The user may not see this clone: its tools are mounted into the folder, for this command.
    script = ""
    for name in ("venv", "httperf"):
        if (ROOT / "build" / name).exists():
            (folder / "build" / name).mkdir(parents=True)
            script += f"mount --bind '{ROOT}/build/{name}' '{folder}/build/{name}'; "
    subprocess.run(["chown", "-R", "nobody:", str(folder)], check=True)
    script += (
        f"export HOME='{folder}' PATH='{folder}/build/venv/bin:{folder}/build/httperf/bin':$PATH; "
        'exec setpriv --reuid nobody --regid nogroup --clear-groups -- "$@"'
    )
    return ["unshare", "--mount", "sh", "-ec", script, "sh"]


@pytest.fixture(params=["root", "user"])
def someones_tree(request, network):
    """A copy of the tree and its owner: root (in a user namespace if need be) or a user."""
    folder = Path(tempfile.mkdtemp(prefix="deathmatch-"))
    folder.chmod(0o755)
    path = copy_tree(folder / "tree")
    if request.param == "user":
        enter = [*network, *unprivileged(path)]
    else:
        enter = network if AS_ROOT else [*network, "unshare", "--map-root-user"]
    yield Tree(path, enter)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def shared_tree(tmp_path_factory, network) -> Tree:
    """A copy of the project for all tests of one module, which only read it."""
    return Tree(copy_tree(tmp_path_factory.mktemp("shared") / "tree"), network)


def wait_for(what, why: str, process: subprocess.Popen | None = None):
    """Return `what()` as soon as it is true; fail if the process that should make it so ends."""
    deadline = time.monotonic() + HUNG_S
    while True:
        over = process is not None and process.poll() is not None
        if found := what():
            return found
        if over:
            pytest.fail(f"ended before {why}:\n{process.stdout.read()}")
        if time.monotonic() > deadline:
            pytest.fail(f"it hangs: {why}")
        time.sleep(0.05)


def first_line(process: subprocess.Popen) -> str | bytes:
    """Return the first line that a process prints: nothing if it ends before."""
    if not select.select([process.stdout], [], [], HUNG_S)[0]:
        pytest.fail(f"it hangs: the first line of {process.args}")
    return process.stdout.readline()


def patient(page):
    """Return the browser's page, which now waits for what comes late on a busy machine."""
    page.set_default_timeout(HUNG_S * 1000)
    return page


# Some experiments, of which a dataset has a report.
PART = ("backlog", "c10k", "dynamic", "overhead", "storage")


@pytest.fixture(scope="session")
def written(tmp_path_factory, network) -> Path:
    """A copy of the project with the paper and the explorer of MINIATURE, and the report of `part`.

    All tests that use it are in one worker: side_by_side.py.
    """
    tree = Tree(copy_tree(tmp_path_factory.mktemp("written") / "tree"), network)
    tree.miniature()
    tree.miniature("part", PART)
    tree.snakemake(dataset=MINIATURE.name).succeeded()
    findings = "paper/part/notebooks/00-findings.ipynb"
    words = ["notebooks/00-findings.md", "--dataset", "part", "--out", findings]
    tree.deathmatch("notebook", *words).succeeded()
    words = ["--dataset", "part", "--notebooks", findings, "--out", "paper/part"]
    tree.deathmatch("paper", *words).succeeded()
    return tree.path


@contextlib.contextmanager
def chromium():
    """A browser, by playwright; CHROMIUM may say where it is."""
    # Many tests need none, and may run where playwright is not installed.
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not path:
        pytest.fail("no chromium: run inside ./shell, or set CHROMIUM to its path")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def browser():
    """The module's own browser."""
    with chromium() as found:
        yield found


def ended(processes: list[psutil.Process]) -> bool:
    """Return whether none of them runs; one that waits for its parent to notice has ended."""
    for process in processes:
        try:
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                return False
        except psutil.NoSuchProcess:
            continue
    return True


def descendants(pid: int) -> list[psutil.Process]:
    """Return the living processes below `pid`, those in its pid namespaces included."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def matching(processes: list[psutil.Process], *words: str) -> list[psutil.Process]:
    """Return those whose name and arguments hold every word; one that has ended matches nothing."""
    found = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if set(words) <= {process.name(), *process.cmdline()}:
                found.append(process)
    return found


def descendant(pid: int, name: str) -> psutil.Process | None:
    """Return a process below `pid` that has this name."""
    return next(iter(matching(descendants(pid), name)), None)


def stopped(pid: int, name: str) -> psutil.Process | None:
    """Stop a process below `pid` that has this name, and return it; None if none lives by then.

    A load generator that asks a server its first questions runs for 0.1 s only.
    """
    found = descendant(pid, name)
    if found is None:
        return None
    with contextlib.suppress(psutil.NoSuchProcess):
        found.suspend()
    return None if ended([found]) else found


def own_network_namespaces(processes: list[psutil.Process]) -> set[str]:
    """Return the network namespaces of these processes that are not those of the tests."""
    found = set()
    for process in processes:
        with contextlib.suppress(OSError):
            found.add(os.readlink(f"/proc/{process.pid}/ns/net"))
    parents = {os.readlink("/proc/self/ns/net")}
    with contextlib.suppress(OSError):
        parents.add(os.readlink(f"/proc/{processes[0].ppid()}/ns/net"))
    return found - parents


def network_namespaces() -> set[str]:
    """Return every network namespace that a process is in or that a mount keeps alive."""
    found = set()
    for proc in Path("/proc").glob("[0-9]*"):
        try:
            found.add(os.readlink(proc / "ns" / "net"))
            lines = (proc / "mountinfo").read_text().splitlines()
        except OSError:
            continue
        found.update(line.split()[3] for line in lines if " - nsfs " in line and "net:[" in line)
    return found


def traces() -> dict[str, str]:
    """Return what this machine shows of namespaces, links and mounts."""
    seen = {}
    for words in (["ip", "netns", "list"], ["ip", "-o", "link"], ["findmnt", "--list", "-n"]):
        done = subprocess.run(words, capture_output=True, text=True)
        seen[" ".join(words)] = done.stdout
    return seen
