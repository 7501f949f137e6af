"""Servers answer as their experiments ask, and wrong answers are reported."""

import json
import socket
import sys
import threading

import pytest
from conftest import HUNG_S, ROOT, Tree, wait_for
from hypothesis import given
from hypothesis import strategies as st

from deathmatch.measure import conformance
from deathmatch.plan import files, matrix
from deathmatch.plan.trial import CONFIGURATION

LOAD_EXPERIMENTS = [name for name in files.names("experiment") if files.experiment(name).client]

# One server for each language of the first experiment; trials check the others, too.
SERVERS = ("null", "tornado", "yaws")

# Runs in the sandbox: starts each variant, checks it as a trial does, stops it, reports.
CHECK = """
import json, sys
from pathlib import Path
from deathmatch.builds import clone, server_build
from deathmatch.hosts import netns_testbed, process as processes
from deathmatch.hosts.process import tail
from deathmatch.measure import conformance, context, server_process
from deathmatch.plan import files, matrix
bed = files.testbed("netns")
events = Path("log-events").resolve()
prefix = ["env", f"PYTHONPATH={Path('tests/log_events').resolve()}", f"LOG_EVENTS={events}"]
hosts = netns_testbed.build(bed, {}, clone.on)
host = hosts.server
for trial in matrix.trials("once"):
    factors, cpus = trial.variant.factors, host.affinity()
    values = trial.placeholders
    values |= {"workers": context.workers(factors.get("schedulers", "one"), len(cpus))}
    running, problem = server_process.start(
        host, hosts.installations["server"], trial.server, values, hosts.address, 8080, cpus=cpus,
        log=Path(sys.argv[1]), prefix=prefix if trial.server.language == "Python" else ())
    checks = conformance.check_variant(
        host, hosts.address, 8080, trial.spec()["conformance"], factors,
        host.processes, trial.server.deviations, dial=hosts.dial)
    checks.append(conformance.check_rest(host, host.processes()))
    # A server of Apache's is another user.
    events.touch()
    events.chmod(0o666)
    before = events.stat().st_size
    usual = conformance.probe(trial.spec()["conformance"], trial.server.deviations)
    logged = conformance.check(hosts.address, 8080, [usual] * 5)
    log_events = events.read_text()[before:].splitlines()
    started = [host.read(f"/proc/{pid}/cmdline").split("\\0") for pid in host.processes()]
    emulators = [words[1:words.index("--")] for words in started if words[0].endswith("beam.smp")]
    stop = server_process.stop(running)
    print(json.dumps({"server": trial.server.name, "experiment": trial.experiment.name,
                      "wrong": problem, "variant": trial.variant.name, "stop": stop.record(),
                      "emulators": emulators, "workers": values["workers"],
                      "factors": factors, "log_events": log_events,
                      "asked": [check.record() for check in logged],
                      "checks": [check.record() for check in checks],
                      "log": tail(running.log)}))
"""

# An emulator shows a flag with a minus sign.
SPINNING = ["-sbwt", "medium", "-sbwtdcpu", "short", "-sbwtdio", "short"]


def flags_of_emulators(one: dict) -> list[list[str]]:
    """Return the flags that each emulator of Erlang in a report of CHECK should have."""
    text = (ROOT / "toolchains" / "erlang" / "vm.args").read_text()
    lines = [line.partition("#")[0].split() for line in text.splitlines()]
    words = [word for line in lines if "-eval" not in line for word in line]
    flags = [word.replace("+", "-") for word in words]
    if one["factors"].get("configuration") == "busy-waiting":
        flags += SPINNING
    is_erlang = "erl" in files.server(one["server"]).packages.tools
    workers = one["workers"]
    return [[*flags, "-S", f"{workers}:{workers}"]] if is_erlang else []


# The defaults of CherryPy's tutorial, whose access log is on.
LOGGED = [("cherrypy", "defaults")]


def assert_conforms(one: dict) -> None:
    """Fail if something that CHECK reports of a variant is wrong.

    A variant that is to have an access log must have it: else CHECK would find none anywhere.
    """
    known = files.server(one["server"]).deviations
    assert one["wrong"] is None, one
    failed = [check for check in one["checks"] if not check["ok"] and check["name"] not in known]
    assert failed == [], (one["variant"], one["log"])
    assert one["stop"]["left"] == [], one["variant"]
    assert one["emulators"] == flags_of_emulators(one), one["variant"]
    logs = (one["server"], one["factors"].get("configuration")) in LOGGED
    assert logs == bool(one["log_events"]), (one["variant"], one["log_events"])


def serves(server: str) -> list[str]:
    """Return the experiments with a load that this server serves, in order."""
    return [
        name for name in LOAD_EXPERIMENTS
        if server in [each.name for each in matrix.serving(name)]
    ]  # fmt: skip


def check_variants(tree: Tree, server: str, everywhere: bool) -> list[dict]:
    """Build a server and check it in each experiment that it serves; return the reports of CHECK.

    A factor that chooses how it runs has all its levels in the first experiment that knows it, or
    `everywhere`.
    """
    grid = "[[experiments.{}.grids]]\nservers = [{!r}]\n"
    text, met = 'title = "t"\ntrials = 1\nseed = 1\n', set()
    for name in serves(server):
        text += f"[experiments.{name}]\nrates_rps = [1]\nduration_s = 1\n"
        text += grid.format(name, server)
        for factor in varied(server, name):
            if everywhere or factor not in met:
                text += grid.format(name, server) + f'{factor} = "all"\n'
                met.add(factor)
    tree.write("config/datasets/once.toml", text)
    # Not in the tests' own network: a build may download.
    Tree(tree.path).deathmatch("build", server, timeout_s=1200).succeeded()
    built = json.loads((tree.path / f"build/servers/{server}/build.json").read_text())
    assert built["ok"], built["log"]
    done = tree.sandboxed("python", "-c", CHECK, "server.log").succeeded()
    found = [json.loads(line) for line in done.text.splitlines()]
    assert {one["experiment"] for one in found} == set(serves(server))
    return found


def varied(server: str, experiment: str) -> list[str]:
    """Return the factors that choose how this server runs in the experiment."""
    able, known = files.server(server).factors, files.experiment(experiment).factors
    has = [name for name in ("schedulers", "readiness") if name in able and name in known]
    configurations = files.server(server).configurations_in(experiment)
    return has + ([CONFIGURATION] if configurations else [])


def answering(reply: bytes, requests: list[dict], stay_open: bool = False) -> list[dict]:
    """Return the checks of a server that gives every connection this reply."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            held = []
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                connection.recv(65536)
                connection.sendall(reply)
                if stay_open:
                    held.append(connection)
                else:
                    connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        found = conformance.check("127.0.0.1", listener.getsockname()[1], requests)
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    return found


ASK = {
    "name": "ask", "send": "GET / HTTP/1.1\r\n\r\n", "status": [200], "body": "Hello",
    "headers": {"Content-Length": "5"}, "closes": True,
}  # fmt: skip
RIGHT = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello"


def test_right_answer():
    assert answering(RIGHT, [ASK]) == [conformance.Check("ask", "")]
    lenient = {key: ASK[key] for key in ("name", "send", "status", "body")}
    assert answering(b"HTTP/1.0 200\r\n\r\nHello", [lenient])[0].ok
    assert answering(RIGHT.replace(b"Content-L", b"content-l"), [ASK])[0].ok


@pytest.mark.parametrize(
    ("reply", "seen"),
    [
        (b"", "no HTTP answer: "),
        (b"Hello", "no HTTP answer: "),
        (RIGHT.replace(b"200", b"500"), "status 500, expected 200"),
        (RIGHT.replace(b"200", b"2000"), "no HTTP answer: illegal status line"),
        (RIGHT.replace(b"5", b"4"), "header Content-Length: '4', expected '5'"),
        (RIGHT.replace(b"Content-Length: 5", b"X: y"), "header Content-Length: None, expected '5'"),
        (RIGHT.replace(b"Hello", b"Adieu"), "body b'Adieu', expected 'Hello'"),
        (RIGHT[:-2], "body: peer closed connection without sending complete message body"),
        (RIGHT + b"!", "more than the answer: b'!'"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\nY: x\r\n" * 200, "no HTTP answer: "),
    ],
)
def test_a_wrong_answer_is_reported(reply, seen):
    (found,) = answering(reply, [ASK])
    assert not found.ok and seen in found.seen


@pytest.mark.parametrize(
    ("reply", "seen"),
    [
        (b"", ""),
        (RIGHT.replace(b"200 OK", b"400 Bad Request"), ""),
        (b"<html>bad request</html>", ""),
        (RIGHT, "it answers b'HTTP/1.1 200 OK"),
        (RIGHT.replace(b"200 OK", b"302 Found"), "it answers b'HTTP/1.1 302 Found"),
    ],
)
def test_garbage_must_not_be_answered_as_a_request(reply, seen):
    (found,) = answering(reply, [{"name": "garbage", "send": "\0 not a request\r\n\r\n"}])
    assert found.ok == (not seen) and found.seen.startswith(seen)


def test_silence_is_a_right_answer_to_garbage():
    (found,) = answering(b"", [{"name": "garbage", "send": "\0\r\n"}], stay_open=True)
    assert found.ok


def test_connection_that_stays_open_or_is_refused(monkeypatch):
    monkeypatch.setattr(conformance, "TIMEOUT_S", 0.5)
    (found,) = answering(RIGHT, [ASK], stay_open=True)
    assert found.seen == "the connection stays open"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        # Accepted by the kernel, never answered.
        (found,) = conformance.check("127.0.0.1", port, [ASK])
        assert found.seen.startswith("TimeoutError")
    (found,) = conformance.check("127.0.0.1", port, [ASK])
    assert found.seen.startswith("ConnectionRefusedError")


def test_answer_that_never_ends_is_cut(monkeypatch):
    monkeypatch.setattr(conformance, "LONGEST_BODY_BYTES", 10_000)
    ask = {key: ASK[key] for key in ("name", "send", "status", "body")}
    (found,) = answering(b"HTTP/1.0 200 OK\r\n\r\n" + b"on " * 10_000, [ask])
    assert not found.ok and found.seen.startswith("body b'on on ")


@given(st.binary(max_size=200))
def test_no_answer_at_all_makes_the_check_itself_fail(reply):
    (found,) = answering(reply, [ASK])
    assert found.ok is False and found.seen


def test_backlog_as_the_kernel_has_it(here):
    with socket.create_server(("127.0.0.1", 0), backlog=7) as listener:
        port = listener.getsockname()[1]
        assert conformance.check_backlog(here, port, 7, 4096).ok
        assert conformance.check_backlog(here, port, 100, 7).ok
        wrong = conformance.check_backlog(here, port, 128, 4096)
        assert not wrong.ok and wrong.seen.startswith("the kernel has [7], expected 128: ")


def test_a_wrong_backlog_ends_the_checks_before_any_request(here):
    """Nothing accepts here: a request would wait for its answer."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        port = listener.getsockname()[1]
        for known, checks in (((), 1), ({"listen backlog 2, capped at {}"}, 2)):
            cap = here.sysctls([conformance.SOMAXCONN])[conformance.SOMAXCONN]
            found = conformance.check_variant(
                here, "127.0.0.1", port, [], {"backlog": 2, "readiness": "epoll"}, lambda: [],
                {name.format(cap) for name in known},
            )  # fmt: skip
            assert not found[0].ok and len(found) == checks


def test_a_wrong_answer_is_distinguished_from_none():
    requests = [{"name": "n", "send": "GET / HTTP/1.1\r\n\r\n", "status": [200], "body": "x"}]
    (wrong,) = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny", requests)
    (none,) = answering(b"", requests)
    assert conformance.contradicts(wrong.seen) and not conformance.contradicts(none.seen)


@pytest.mark.parametrize("server", SERVERS)
def test_every_variant_conforms(tree: Tree, server):
    """tests/conformance/test_every_server.py has every server, and every level in each."""
    for one in check_variants(tree, server, everywhere=False):
        assert_conforms(one)
        assert one["stop"] == {"on_sigterm": True, "killed": [], "left": []}, one["variant"]


def test_a_server_that_spins_is_reported(here):
    """There are many: even on a busy machine they get a quarter of a CPU together."""
    words = ["sh", "-c", "echo; while :; do :; done"]
    spinning = [here.start(words, talk=True) for _ in range(16)]
    assert [process.receive(HUNG_S) for process in spinning] == ["\n"] * len(spinning)
    wrong = conformance.check_rest(here, [process.pid for process in spinning], within_s=0.5)
    for process in spinning:
        process.kill()
    assert not wrong.ok and wrong.seen.startswith("after 0.5 s it still uses ")
    resting = here.start(["sleep", "infinity"])
    assert conformance.check_rest(here, [resting.pid]).ok
    resting.kill()


def test_a_wrong_readiness_mechanism_is_reported(here):
    """A Python process that waits in poll, taken for one that waits in epoll."""
    script = "import select; select.poll().poll()"
    waiting = here.start([sys.executable, "-c", script])
    pids = [waiting.pid]
    wait_for(lambda: conformance.check_readiness(here, pids, "poll").ok, "it waits")
    wrong = conformance.check_readiness(here, pids, "epoll")
    waiting.kill()
    assert not wrong.ok and wrong.seen == "its threads wait in poll"
