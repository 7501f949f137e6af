"""Building, starting and stopping servers."""

import json
import os
import re
import signal
import socket
import sys

import pytest
from conftest import BROKEN, HUNG_S, Tree

from deathmatch.errors import UserError
from deathmatch.hosts import server_build
from deathmatch.hosts.host import Local
from deathmatch.measure import server_process
from deathmatch.plan.root import ROOT
from deathmatch.plan.server import Server

BUILD = (
    "import sys; from deathmatch.hosts import server_build; from deathmatch.plan import files\n"
    "print(server_build.built(files.server(sys.argv[1]))['ok'])"
)


def stamp(tree: Tree, name: str) -> int:
    return (tree.path / f"build/servers/{name}/build.json").stat().st_mtime_ns


def test_a_server_is_built_again_only_from_other_sources_or_tools(tree: Tree):
    # Another toolchain's build is not kept: what counts them is outside its folder.
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


def test_build_that_fails_is_told_with_its_last_lines(tree: Tree):
    tree.server("one", "ok", build="seq 100; no-such-compiler; echo not reached")
    done = tree.deathmatch("build", "one").succeeded()
    assert "[build] one failed" in done.text and "no-such-compiler: not found" in done.text
    assert "not reached" not in done.text and "\n79\n" not in done.text
    result = json.loads((tree.path / "build/servers/one/build.json").read_text())
    assert result["ok"] is False and result["version"] is None
    assert "\n1\n2\n" in (tree.path / "build/servers/one/build.log").read_text()


def test_lock_with_a_wrong_hash_is_not_installed(tree: Tree):
    path = tree.path / "servers/tornado/requirements.txt"
    text = re.sub(
        r"sha256:\w", lambda match: "sha256:" + "0f"[match[0][-1] == "0"], path.read_text()
    )
    path.write_text(text)
    # Not in the tests' own network: it has to be downloaded to be refused.
    Tree(tree.path).deathmatch("build", "tornado").succeeded()
    result = json.loads((tree.path / "build/servers/tornado/build.json").read_text())
    assert result["ok"] is False
    assert re.search(r"Expected +(or )?\w{64}\n +Got +\w{64}", result["log"])


def test_version_is_the_first_line(tree: Tree):
    tree.server("one", "ok", version="echo One 1.0; echo more")
    tree.deathmatch("build", "one").succeeded()
    assert (
        json.loads((tree.path / "build/servers/one/build.json").read_text())["version"] == "One 1.0"
    )


def test_unknown_server(tree: Tree):
    done = tree.deathmatch("build", "nul").failed()
    assert "there is no server 'nul'\n  did you mean 'null'?" in done.text


def test_environment_holds_the_servers_own_programs_first(monkeypatch, tmp_path):
    folder = ROOT / "build" / "servers" / "x"
    monkeypatch.setenv("DEATHMATCH_TOOLCHAIN", "debian")
    path = server_build.environment("x")["PATH"].split(":")
    assert path[:2] == [f"{folder}/bin", f"{folder}/venv/bin"]
    monkeypatch.setenv("DEATHMATCH_TOOLCHAIN", "nix")
    monkeypatch.delenv("DEATHMATCH_SERVERS", raising=False)
    assert server_build.environment("x")["PATH"].split(":")[:2] == [
        f"{folder}/bin",
        f"{folder}/nix/bin",
    ]
    (tmp_path / "x").mkdir()
    monkeypatch.setenv("DEATHMATCH_SERVERS", str(tmp_path))
    assert server_build.environment("x")["PATH"].split(":")[1] == f"{tmp_path}/x/bin"
    with pytest.raises(UserError, match="holds no package of the server 'y'"):
        server_build.environment("y")
    monkeypatch.setenv("SECRET", "1")
    monkeypatch.setenv("PIP_X", "1")
    found = server_build.environment("x")
    assert "SECRET" not in found and found["PIP_X"] == "1"


def broken(mode: str) -> Server:
    """Return the specification of broken.py in a mode."""
    run = f"{sys.executable} {BROKEN} {mode} {{host}} {{port}}"
    return Server(
        title="broken", language="Python", source="ours", about="A test.", version="true",
        experiments=[], run=run, ready_timeout_s=2,
    )  # fmt: skip


@pytest.fixture
def start(tmp_path, monkeypatch):
    """A function that starts broken.py in a mode on a free port, and what it returned."""
    monkeypatch.setattr(server_build, "build_dir", lambda name: tmp_path)
    started = []

    def run(mode: str) -> tuple[server_process.Running, str | None]:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        log = tmp_path / "server.log"
        cpus = sorted(os.sched_getaffinity(0))[:1]
        running = server_process.start(
            Local(), broken(mode), {}, "127.0.0.1", port, cpus=cpus, log=log
        )
        started.append(running)
        return started[-1]

    yield run
    for running, _ in started:
        running.process.kill()


def test_start_waits_until_it_listens(start):
    running, wrong = start("ok")
    assert wrong is None and running.died() is None
    assert server_process.listens("127.0.0.1", running.port)
    affinity = os.sched_getaffinity(running.process.pid)
    assert affinity == set(sorted(os.sched_getaffinity(0))[:1])
    assert running.log.read_text().startswith("$ taskset --cpu-list ")


def test_start_tells_what_went_wrong(start):
    assert start("exits")[1] == "ended before it listened (exit status 1)"
    running, wrong = start("silent")
    expected = f"did not listen on port {running.port} within 2 s: it listens on no TCP port"
    assert wrong == expected
    running, wrong = start("elsewhere")
    assert re.search(
        rf"within 2 s: it listens on 127.0.0.1:\d+: let it take {{port}}, which is {running.port}$",
        wrong,
    )


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (["127.0.0.1:80", "[::1]:80"], "which only its own host can reach: let it take {host}"),
        (["[::]:80"], "it listens on [::]:80, not on IPv4 address 10.0.0.1: let it take {host}"),
        (["0.0.0.0:8000"], "it listens on 0.0.0.0:8000: let it take {port}, which is 80"),
    ],
)
def test_where_a_server_listens_instead(found, told):
    assert told in server_process.whereabouts(found, "10.0.0.1", 80)


def test_end_by_a_signal_has_its_name(start):
    running, _ = start("ok")
    for number in (signal.SIGABRT, signal.SIGKILL):
        running, _ = start("ok")
        running.process.signal(number)
        assert running.died(HUNG_S) == f"signal {number.name}"


def test_log_is_shown_from_its_end(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"".join(b"line %d\n" % n for n in range(100)) + b"not \xff UTF-8\n")
    shown = server_build.tail(log, 3).splitlines()
    assert shown == ["line 98", "line 99", "not � UTF-8"]


def test_placeholder_that_only_a_trial_would_miss(tree: Tree):
    """A command that no check of the file caught still gives one message, no traceback."""
    script = (
        "from deathmatch import errors; from deathmatch.hosts import server_build\n"
        "from deathmatch.plan import files\n"
        "errors.run_main(lambda: server_build.words(files.server('null'), {'host': 'h'}))"
    )
    done = tree.run("python", "-c", script).failed()
    assert "servers/null/server.toml: cannot fill the placeholders" in done.text
    assert "placeholders here: {build}, {folder}, {host}" in done.text
