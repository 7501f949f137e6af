"""Building, starting and stopping servers."""

import json
import os
import re
import shutil
import signal
import socket
import sys

import pytest
from conftest import AS_ROOT, BROKEN, HUNG_S, Tree, descendant, descendants, ended, kill, wait_for

from deathmatch.agent.keeper import Settings
from deathmatch.builds import server_commands
from deathmatch.builds.clone import Clone
from deathmatch.errors import UserError
from deathmatch.hosts import opening
from deathmatch.hosts.process import tail
from deathmatch.measure import server_process
from deathmatch.plan.paths import ROOT
from deathmatch.plan.server import Server

BUILD = (
    "import sys; from deathmatch.builds import server_build; from deathmatch.plan import files\n"
    "print(server_build.built(files.server(sys.argv[1]))['ok'])"
)


def stamp(tree: Tree, name: str) -> int:
    return (tree.path / f"build/servers/{name}/build.json").stat().st_mtime_ns


def test_a_server_is_built_again_only_from_other_sources_or_tools(tree: Tree):
    # The builds are counted outside the server's folder, which another toolchain does not keep.
    tree.server("one", "ok", build="echo built >>{build}/../count")
    assert tree.run("python", "-c", BUILD, "one").text.endswith("True\n")
    first = stamp(tree, "one")
    for _ in range(2):
        assert tree.run("python", "-c", BUILD, "one").succeeded().text == "True\n"
    (tree.path / "servers/one/broken.py").touch()
    tree.run("python", "-c", BUILD, "one").succeeded()
    assert stamp(tree, "one") == first
    tree.write("servers/one/more.txt", "more")
    tree.run("python", "-c", BUILD, "one").succeeded()
    tree.environment["DEATHMATCH_TOOLCHAIN"] = "another"
    tree.run("python", "-c", BUILD, "one").succeeded()
    assert (tree.path / "build/servers/count").read_text() == "built\n" * 3


def result_of(tree: Tree, name: str) -> dict:
    """Return what came of the last attempt to build the server."""
    return json.loads((tree.path / f"build/servers/{name}/build.json").read_text())


def test_build_that_fails_is_reported_with_its_last_lines(shared_tree: Tree):
    shared_tree.server("one", "ok", build="seq 100; no-such-compiler; echo not reached")
    done = shared_tree.deathmatch("build", "one").failed()
    assert "[build] one failed" in done.text and "no-such-compiler: not found" in done.text
    assert "the whole log is build/servers/one/build.log" in done.text
    assert "not reached" not in done.text and "\n79\n" not in done.text
    result = result_of(shared_tree, "one")
    assert result["ok"] is False and result["version"] is None
    assert "\n1\n2\n" in (shared_tree.path / "build/servers/one/build.log").read_text()
    # Snakemake takes a failed build for a result.
    shared_tree.deathmatch("build", "--record", "one").succeeded()


def test_a_build_that_changes_its_own_sources_is_refused(shared_tree: Tree):
    """A compiler that leaves objects among its sources would outdate each trial."""
    shared_tree.server("writes", "ok", build="touch server.o .server.swp")
    said = shared_tree.deathmatch("build", "writes").failed().text
    assert "the build wrote into the server's own folder: servers/writes/server.o\n" in said


def test_version_command_that_fails(shared_tree: Tree):
    for name, command, reason in (
        ("ends", "echo broken library; exit 3", "broken library\nthe version command failed and "),
        ("silent", "true", "it printed nothing\nthe version command failed\n"),
    ):
        shared_tree.server(name, "ok", version=command)
        done = shared_tree.deathmatch("build", name).failed()
        assert f"$ {command}\n{reason}" in done.text
        log = shared_tree.path / f"build/servers/{name}/build.log"
        assert reason.strip() in log.read_text()


def test_a_build_requires_the_factors_of_an_experiments_checks(shared_tree: Tree):
    shared_tree.server("asked", "ok")
    shared_tree.replace("servers/asked/server.toml", '["backlog"]', '["overhead"]')
    said = shared_tree.deathmatch("build", "asked").failed().text
    assert "key factors.layer: experiment 'overhead' checks its answers by this factor" in said
    shutil.rmtree(shared_tree.path / "servers/asked")


def test_a_package_that_cannot_be_had_fails_the_build(shared_tree: Tree):
    shared_tree.server("lacks", "ok")
    toml = shared_tree.path / "servers/lacks/server.toml"
    toml.write_text(toml.read_text() + '\n[packages]\ndebian = ["no-such-package"]\n')
    # There is no network: nothing is gained by trying again.
    settings = shared_tree.write("apt.conf", 'Acquire::Retries "0";\n')
    tree = Tree(shared_tree.path, shared_tree.enter, {"APT_CONFIG": str(settings)})
    done = tree.deathmatch("build", "lacks").failed()
    assert "[build] lacks failed" in done.text and "no-such-package" in done.text


def test_a_build_that_fails_leaves_the_former_one(tree: Tree):
    good = "mkdir -p {build}/bin && echo good >{build}/bin/it"
    tree.server("one", "ok", build=good)
    done = tree.deathmatch("build", "one").succeeded()
    assert "[build] one: built, its version is: 1\n" in done.text
    tree.replace("servers/one/server.toml", "echo good", "echo bad")
    tree.replace("servers/one/server.toml", "/bin/it", "/bin/it; exit 4")
    tree.deathmatch("build", "one").failed()
    made = tree.path / "build/servers/one/bin/it"
    assert made.read_text() == "good\n"
    assert result_of(tree, "one")["ok"] is False
    # With the former sources again, the build that is there fits.
    made.write_text("still there\n")
    tree.replace("servers/one/server.toml", "echo bad", "echo good")
    tree.replace("servers/one/server.toml", "/bin/it; exit 4", "/bin/it")
    assert tree.run("python", "-c", BUILD, "one").succeeded().text == "True\n"
    assert made.read_text() == "still there\n"


def test_a_build_that_is_interrupted_leaves_the_former_one(tree: Tree):
    tree.server("one", "ok", build="echo $$ >>{build}/it; test ! -e {folder}/slow || sleep 1000")
    tree.deathmatch("build", "one").succeeded()
    folder = tree.path / "build/servers/one"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    tree.write("servers/one/slow", "")
    process = tree.start("python", "-m", "deathmatch", "build", "one")
    aside = tree.path / "build/aside/one"
    wait_for(lambda: descendant(process.pid, "sleep"), "the build runs", process)
    sleeping = descendants(process.pid)
    assert (aside / "it").read_text() != before["it"].decode()
    kill(process)
    wait_for(lambda: ended(sleeping), "what it started ends with it")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (tree.path / "servers/one/slow").unlink()
    tree.deathmatch("build", "one").succeeded()
    assert not aside.exists()
    assert (folder / "it").read_text().startswith(before["it"].decode())


def test_a_folder_that_forbids_it_is_copied_and_removed(someones_tree: Tree):
    """Go makes the folders of its module cache so."""
    tree = someones_tree
    tree.server("one", "ok", build="mkdir -p {build}/go/mod; touch {build}/go/mod/file || true; "
                                   "chmod -R a-w {build}/go")  # fmt: skip
    for _ in range(2):
        tree.deathmatch("build", "one").succeeded()
    assert (tree.path / "build/servers/one/go/mod/file").exists()
    assert not (tree.path / "build/aside/one").exists()


def test_a_virtual_environment_stays_without_network(tree: Tree):
    """The network of the tests' trees is cut off; only the first build and the last use ours."""
    online = Tree(tree.path)
    tree.server(
        "one",
        "ok",
        build="cp broken.py {build}/",
        version="python -c 'import six; print(six.__version__)'",
    )
    toml = tree.path / "servers/one/server.toml"
    toml.write_text(toml.read_text() + '\n[packages]\npypi = "requirements.txt"\n')
    listed = (ROOT / "servers/txws/requirements.txt").read_text()
    text = re.search(r"^six==.*?(?=^\w)", listed, re.MULTILINE | re.DOTALL)[0]
    lock = tree.write("servers/one/requirements.txt", text)
    online.deathmatch("build", "one").succeeded()
    made = tree.path / "build/servers/one/venv/made-of"
    first = made.stat().st_mtime_ns
    tree.write("servers/one/broken.py", "# edited\n" + BROKEN.read_text())
    done = tree.deathmatch("build", "one").succeeded()
    assert "edited" in (tree.path / "build/servers/one/broken.py").read_text()
    assert made.stat().st_mtime_ns == first, done.text
    # Another list needs the network; without it the former build stays.
    lock.write_text(text + "\n# another\n")
    tree.environment["PIP_RETRIES"] = "0"
    tree.deathmatch("build", "one").failed()
    assert made.stat().st_mtime_ns == first


@pytest.mark.once
def test_a_build_without_its_module_in_c_fails(tree: Tree):
    """Tornado's installer ignores the error; the version command imports the module and fails."""
    # Python.h includes it, as it was there when Debian built that Python; nixpkgs' gcc has none.
    header = tree.write("crypt.h", "#error this compiler has no crypt.h\n")
    script = f"mount --bind '{header}' /usr/include/crypt.h; exec \"$@\""
    user = [] if AS_ROOT else ["--user", "--map-root-user"]
    # Not in the tests' own network: it downloads.
    tree.enter = ["unshare", *user, "--mount", "--", "sh", "-ec", script, "sh"]
    done = tree.deathmatch("build", "tornado-3.2")
    assert done.status and "ImportError: No module named speedups" in done.text


def test_trials_of_a_server_that_could_not_be_built_are_due_once_it_is(tree: Tree):
    tree.dataset("test", ["one"], [100])
    # The build fails for a reason outside its sources, as without a mirror.
    build = "echo main.c:3: no such header; test -e {build}/../missing"
    tree.server("one", "ok", build=build)
    [trial] = tree.trials("test").values()
    tree.deathmatch("trial", trial.relative_to(tree.path), "--any-outcome").succeeded()
    record = json.loads((trial / "trial.json").read_text())
    assert record["outcome"] == "not built" and "main.c:3: no such header" in record["reason"]
    tree.deathmatch("build", "one").failed()
    assert trial.exists()
    tree.write("build/servers/missing", "")
    tree.deathmatch("build", "one").succeeded()
    assert "0 of 1 trials" in tree.checked(dataset="test").succeeded().text


def test_lock_with_a_wrong_hash_is_not_installed(tree: Tree):
    path = tree.path / "servers/tornado/requirements.txt"
    text = re.sub(
        r"sha256:\w", lambda match: "sha256:" + "0f"[match[0][-1] == "0"], path.read_text()
    )
    path.write_text(text)
    # Not in the tests' own network, as the package must be downloaded.
    Tree(tree.path).deathmatch("build", "tornado").failed()
    result = json.loads((tree.path / "build/servers/tornado/build.json").read_text())
    assert result["ok"] is False
    assert re.search(r"Expected +(or )?\w{64}\n +Got +\w{64}", result["log"])


def test_a_version_is_the_first_line_in_utf_8_in_any_locale(shared_tree: Tree):
    shared_tree.server("utf", "ok", version=r"printf 'é Serv\351 1.0\nmore\n'")
    # A locale of ASCII only, in which Python must not switch to UTF-8.
    ascii_alone = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    tree = Tree(shared_tree.path, shared_tree.enter, ascii_alone)
    tree.run("bin/deathmatch", "build", "utf").succeeded()
    assert result_of(tree, "utf")["version"] == "é Serv\ufffd 1.0"


def test_environment_holds_the_servers_own_programs_first(monkeypatch, tmp_path):
    folder = ROOT / "build" / "servers" / "x"
    monkeypatch.setenv("DEATHMATCH_TOOLCHAIN", "debian")
    path = server_commands.environment("x")["PATH"].split(":")
    assert path[:2] == [f"{folder}/bin", f"{folder}/venv/bin"]
    monkeypatch.setenv("DEATHMATCH_TOOLCHAIN", "nix")
    monkeypatch.delenv("DEATHMATCH_SERVERS", raising=False)
    assert server_commands.environment("x")["PATH"].split(":")[:2] == [
        f"{folder}/bin",
        f"{folder}/nix/bin",
    ]
    (tmp_path / "x").mkdir()
    monkeypatch.setenv("DEATHMATCH_SERVERS", str(tmp_path))
    assert server_commands.environment("x")["PATH"].split(":")[1] == f"{tmp_path}/x/bin"
    with pytest.raises(UserError, match="has no package of the server 'y'"):
        server_commands.environment("y")
    monkeypatch.setenv("SECRET", "1")
    monkeypatch.setenv("PIP_X", "1")
    found = server_commands.environment("x")
    assert "SECRET" not in found and found["PIP_X"] == "1"


def broken(mode: str) -> Server:
    """Return the specification of broken.py in a mode."""
    run = f"{sys.executable} {BROKEN} {mode} {{host}} {{port}}"
    return Server(
        title="broken", language="Python", source="ours", about="A test.", version="true",
        experiments=[], run=run, ready_timeout_s=1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def alone(network, tmp_path_factory):
    """A host in the tests' network namespace, where nothing else begins to listen."""
    settings = Settings(str(tmp_path_factory.mktemp("agent")), HUNG_S, lock=False)
    with opening.through("alone", network, settings) as host:
        yield host


@pytest.fixture
def start(alone, tmp_path, monkeypatch):
    """A function that starts broken.py in a mode on a free port, and what it returned."""
    monkeypatch.setattr(server_commands, "build_dir", lambda name: tmp_path)
    started = []

    def run(mode: str) -> tuple[server_process.Running, str | None]:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        log = tmp_path / "server.log"
        cpus = sorted(os.sched_getaffinity(0))[:1]
        running = server_process.start(
            alone, Clone(), broken(mode), {}, "127.0.0.1", port, cpus=cpus, log=log
        )
        started.append(running)
        return started[-1]

    yield run
    for running, _ in started:
        running.process.kill()


def test_start_waits_until_it_listens(start, alone):
    running, wrong = start("ok")
    assert wrong is None and running.died() is None
    assert server_process.listens(alone, "127.0.0.1", running.port)
    shown = alone.run("taskset", "--cpu-list", "--pid", str(running.process.pid))
    assert shown.endswith(f"list: {min(os.sched_getaffinity(0))}\n")
    assert " taskset --cpu-list " in running.log.read_text()


def test_start_reports_what_went_wrong(start):
    assert start("exits")[1] == "ended before it listened (exit status 1)"
    running, wrong = start("silent")
    expected = f"did not listen on port {running.port} within 1 s: it listens on no TCP port"
    assert wrong.startswith(expected) and "ready_timeout_s" in wrong
    running, wrong = start("elsewhere")
    assert re.search(
        rf"within 1 s: it listens on 127\.0\.0\.1:\d+: let it take {{port}}, which is "
        rf"{running.port}$", wrong,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (["127.0.0.1:80", "[::1]:80"], "which only its own host can reach: let it take {host}"),
        (["[::]:80"], "it listens on [::]:80, not on IPv4 address 10.0.0.1: let it take {host}"),
    ],
)
def test_where_a_server_listens_instead(found, says):
    assert says in server_process.whereabouts(found, "10.0.0.1", 80)


def test_end_by_a_signal_has_its_name(start):
    for number in (signal.SIGABRT, signal.SIGKILL):
        running, _ = start("ok")
        running.process.signal(number)
        assert running.died(HUNG_S) == f"signal {number.name}"


def test_log_is_shown_from_its_end(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"".join(b"line %d\n" % n for n in range(100)) + b"not \xff UTF-8\n")
    shown = tail(log, 3).splitlines()
    assert shown == ["line 98", "line 99", "not � UTF-8"]
