"""The agent on a host that a real ssh reaches, as root and as an ordinary user."""

import os
import signal
import time
from pathlib import Path

import pytest
import sshd
from conftest import HUNG_S, wait_for
from sshd import AHEAD_S, PYTHON, SETTING, SOMEONE, connect

from deathmatch.agent import children, diag, kernel
from deathmatch.errors import UserError
from deathmatch.hosts import clocks
from deathmatch.hosts.clocks import Offset
from deathmatch.hosts.host import Host

pytestmark = pytest.mark.ssh


@pytest.fixture(scope="module")
def machines():
    yield from sshd.make()


@pytest.fixture(scope="module", params=SOMEONE)
def session(request, machines):
    """A session of root or of an ordinary user, for the tests that only use it."""
    with connect(machines, request.param) as host:
        yield host


@pytest.fixture
def host(session):
    """That session; programs that a test leaves are killed."""
    yield session
    session.kill(session.processes(), HUNG_S)


def test_programs(host: Host, tmp_path):
    assert host.run("echo", "a  b", "'c'") == "a  b 'c'\n"
    with pytest.raises(UserError, match=r"`sh -c 'echo bad >&2; exit 3'` failed: bad"):
        host.run("sh", "-c", "echo bad >&2; exit 3")
    output = tmp_path / "output"
    output.write_text("before\n")
    words = ["sh", "-c", "pwd; echo $MINE >&2; exit 5"]
    process = host.start(
        words, output=output, folder=Path("/usr"), environment=os.environ | {"MINE": "yes"}
    )
    assert process.wait() == 5 and process.wait(0) == 5
    assert output.read_text() == "before\n/usr\nyes\n"
    last = max(host.affinity())
    pinned = host.start(["sh", "-c", "taskset -cp $$"], cpus=[last], output=tmp_path / "pinned")
    assert pinned.wait() == 0 and f"list: {last}\n" in (tmp_path / "pinned").read_text()
    with pytest.raises(FileNotFoundError):
        host.start(["/no/such/program"])
    assert host.start(["no-such-program"], cpus=[last]).wait() in (126, 127)


def test_output_is_there_before_the_end_too(host: Host, tmp_path):
    output = tmp_path / "output"
    process = host.start(["sh", "-c", "echo one; read line"], output=output, talk=True)
    assert process.receive(HUNG_S) == "one\n"
    process.kill()
    process = host.start(["sh", "-c", "echo one; exec sleep infinity"], output=output)

    def collected() -> str:
        process.collect()
        return output.read_text()

    assert wait_for(collected, "it has printed") == "one\n"
    assert process.wait(0) is None
    process.kill()
    assert process.wait() == -signal.SIGKILL and output.read_text() == "one\n"


def test_signals(host: Host, tmp_path):
    script = "trap 'echo got; exit 4' TERM; echo $$; while :; do sleep 0.01; done"
    process = host.start(["sh", "-c", script], talk=True)
    assert process.receive(HUNG_S) == f"{process.pid}\n"
    process.signal(signal.SIGTERM)
    assert process.wait() == 4 and process.receive(HUNG_S) == "got\n"
    assert process.receive(HUNG_S) == "" and process.receive(0) == ""
    process.signal(signal.SIGTERM)
    process = host.start(["sh", "-c", "sleep infinity & echo $!; wait"], talk=True)
    child = int(process.receive(HUNG_S))
    assert {process.pid, child} <= set(host.processes())
    process.signal(signal.SIGTERM, group=True)
    assert process.wait() == -signal.SIGTERM
    wait_for(lambda: child not in host.processes(), "its child has the signal too")


def test_conversation(host: Host):
    script = "while read line; do echo got $line; done; echo over; echo last"
    process = host.start(["sh", "-c", script], talk=True)
    assert process.receive(0) is None
    process.send("a\nb\n")
    assert [process.receive(HUNG_S) for _ in range(2)] == ["got a\n", "got b\n"]
    assert process.finish(HUNG_S) == "over\nlast\n"
    assert process.wait() == 0 and process.receive(0) == ""
    process = host.start(["sleep", "infinity"], talk=True)
    assert process.finish(0.1) == "" and process.wait() == -signal.SIGKILL
    process = host.start(["true"], talk=True)
    process.wait()
    with pytest.raises(BrokenPipeError):
        process.send("nobody reads")


def test_left_children_are_seen_and_killed(host: Host):
    process = host.start(["sh", "-c", "setsid sleep infinity & setsid sleep infinity &"])
    assert process.wait() == 0
    left = wait_for(lambda: len(found := host.processes()) == 2 and found, "both are seen")
    assert host.processes(left[:1]) == left[1:]
    assert host.usage(left[0])["threads"] == 1 and len(host.threads(left[0])) == 1
    assert host.usage(left[0])["rss_bytes"] > 0
    host.kill(left, HUNG_S)
    assert host.processes() == []
    # The session is the first process: it reaps orphans.
    wait_for(lambda: set(host.usage(left[0]).values()) == {0}, "it is reaped")
    with pytest.raises(FileNotFoundError):
        host.threads(left[0])


def test_files(host: Host, tmp_path):
    ours, back = tmp_path / "ours", tmp_path / "back"
    ours.write_bytes(os.urandom(700_000))
    host.write(host.folder / "theirs", ours.read_bytes())
    assert host.run("stat", "-c", "%s", str(host.folder / "theirs")) == "700000\n"
    back.write_text("what was there before")
    host.fetch(host.folder / "theirs", back)
    assert back.read_bytes() == ours.read_bytes()
    host.make_folder(host.folder / "of" / "many")
    host.write(host.folder / "of" / "many" / "a", "é\n".encode())
    host.write(host.folder / "of" / "b", b"")
    brought = host.fetch_all(host.folder / "of", tmp_path / "of")
    assert [str(path.relative_to(tmp_path)) for path in brought] == ["of/b", "of/many/a"]
    assert brought[1].read_text() == host.read(str(host.folder / "of/many/a")) == "é\n"
    with pytest.raises(FileNotFoundError):
        host.read("/no/such")
    with pytest.raises(OSError):
        host.write("/proc/cpuinfo", b"x")


def test_kernel_is_read_as_on_this_machine(host: Host, machines):
    counters = host.counters()
    assert {"Tcp ActiveOpens"} <= counters["snmp"].keys()
    assert {"TcpExt ListenDrops"} <= counters["netstat"].keys()
    assert {"TCP tw"} <= counters["sockstat"].keys()
    before = kernel.machine([0])
    middle = host.sample([], cpus=[0])["machine"]
    after = kernel.machine([0])
    assert before.keys() == middle.keys()
    for name in ("cpu_user_us", "cpu_idle_us", "server_cpus_user_us", "context_switches"):
        assert before[name] <= middle[name] <= after[name], name
    assert host.affinity() == sorted(os.sched_getaffinity(0))
    assert host.raise_descriptors(1024) == 1024
    assert host.run("sh", "-c", "ulimit -n") == "1024\n"
    assert host.sysctls([SETTING, "net.no.such"]) == {
        SETTING: machines.sysctl(SETTING), "net.no.such": "",
    }  # fmt: skip


def test_requests_from_the_host(host: Host):
    """The requests of a conformance check, sent from the client's side of the link."""
    script = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1],"
        " flush=True)\nwhile True:\n c, _ = s.accept(); c.sendall(c.recv(9).upper()); c.close()"
    )
    server = host.start([PYTHON, "-ISsuc", script], talk=True)
    port = int(server.receive(HUNG_S))
    assert [one.address for one in host.listeners(port)] == [f"127.0.0.1:{port}"]
    assert host.listeners(port)[0] in host.listeners() and host.count(diag.ESTABLISHED, port) == 0
    with host.connect("127.0.0.1", port, HUNG_S) as connection:
        connection.sendall(b"hello")
        assert connection.recv(99) == b"HELLO" and connection.recv(99) == b""
    with host.connect("127.0.0.1", port, HUNG_S) as connection:
        connection.settimeout(0.1)
        with pytest.raises(TimeoutError):
            connection.recv(99)
        # The first connection is closed on one side only, and does not count.
        assert host.count(diag.ESTABLISHED, port) == 1
    server.kill()
    with pytest.raises(ConnectionRefusedError):
        host.connect("127.0.0.1", port, HUNG_S)


def clock_ns(host: Host) -> int:
    """Return the host's monotonic clock, as it was some time during this call."""
    return host.agent.call("clock")["monotonic_ns"]


def test_samples(host: Host):
    """A sample of the named processes; default: all that the session's programs started."""
    script = "while :; do :; done & echo; exec sleep infinity"
    busy = host.start(["sh", "-c", script], talk=True)
    assert busy.receive(HUNG_S) == "\n"
    listener = host.start([PYTHON, "-ISsuc", LISTENS], talk=True)
    port = int(listener.receive(HUNG_S))
    first = host.sample(None, port, [0])
    assert first.keys() == {"at_ns", "counters", "usage", "queues", "machine"}
    assert first["queues"] == [2, 5, 0], "two wait to be accepted, of five that may"
    assert first["usage"]["threads"] == len(host.processes()) == 3
    later = wait_for(
        lambda: (
            (taken := host.sample(cpus=[0]))["usage"]["cpu_ns"] > first["usage"]["cpu_ns"] and taken
        ),
        "it is busy",
    )
    assert later.keys() == {"at_ns", "counters", "usage", "machine"}
    assert first["at_ns"] < later["at_ns"] <= clock_ns(host)
    assert first["counters"].keys() == set(kernel.COUNTED)
    for name in ("context_switches", "server_cpus_user_us"):
        assert first["machine"][name] <= later["machine"][name]
    alone = host.sample([busy.pid])
    assert alone.keys() == {"at_ns", "counters", "usage"}
    assert alone["usage"]["threads"] == 1
    assert set(host.sample([])["usage"].values()) == {0}
    with pytest.raises(RuntimeError, match="KeyError: 'cpu12345'"):
        host.sample([], cpus=[12345])


LISTENS = (
    "import socket, time; s = socket.create_server(('127.0.0.1', 0), backlog=5);"
    " held = [socket.create_connection(s.getsockname()) for _ in range(2)];"
    " print(s.getsockname()[1], flush=True); time.sleep(1e6)"
)
# More than twice what is kept, with a pause after which the first half is cut. What is said in a
# pause is said again until there is input: a line that falls into a cut is lost.
TALKS = (
    "import select, sys\n"
    "def pause(word):\n"
    "    while not select.select([sys.stdin], [], [], 0.1)[0]: print(word, flush=True)\n"
    "    input()\n"
    "for n in range(400_000): print(f'{n:49}')\n"
    "pause('half')\n"
    "for n in range(400_000, 800_000): print(f'{n:49}')\n"
    "pause('all')"
)


def test_output_of_a_host_elsewhere_is_bounded(host: Host, tmp_path):
    """Brought before a cut, after it and at the end: beginning, note and last lines, each once."""
    log = tmp_path / "server.log"
    log.write_text("$ a server\n")
    words = ["sh", "-c", 'echo begins; exec "$0" -ISsuc "$1" 2>&1', PYTHON, TALKS]
    # Its standard output must go to the file: a server's input is no pipe.
    script = 'mkfifo "$0"; exec 3<>"$0"; exec "$@" <&3'
    fifo = str(host.folder / "input")
    process = host.start(
        ["sh", "-c", script, fifo, *words], output=log, bounded=True, folder=host.folder
    )

    def says(last: str) -> bool:
        process.collect()
        assert log.stat().st_size < 3 * children.LIMIT_BYTES
        return log.read_bytes().endswith(f"{last}\n".encode())

    wait_for(lambda: says("half"), "it has said a half")
    half_bytes = process.left_out_bytes()
    assert 0 < half_bytes < 20.1e6
    host.run("sh", "-c", 'echo > "$0"', fifo)
    wait_for(lambda: says("all"), "it has said all")
    assert process.wait(0) is None, "no signal, no pipe that is full"
    host.run("sh", "-c", 'echo > "$0"', fifo)
    assert process.wait() == 0
    all_bytes = process.left_out_bytes()
    text = log.read_text()
    assert len(text) <= children.LIMIT_BYTES + children.HEAD_BYTES
    assert text.startswith(f"$ a server\nbegins\n{0:49}\n{1:49}\n")
    assert text.endswith("\nall\n") and "half" not in text
    before, *after = text.split("[deathmatch: about ")
    assert len(after) == 1
    for part in (before, *after):
        whole = [line for line in part.splitlines() if len(line) == 49]
        numbers = [int(line) for line in whole]
        assert numbers and numbers == sorted(set(numbers))
    # Output during a cut may be lost and is not counted: megabytes on a busy machine.
    assert half_bytes < all_bytes
    assert len(text) + all_bytes < 40.1e6


def test_clocks_a_thousand_seconds_apart(host: Host):
    """The true offset is known: both clocks are the same but for the time namespace."""
    found = host.clocks()
    assert abs(found.monotonic.ns - AHEAD_S * 10**9) <= found.monotonic.bound_ns
    assert abs(found.wall.ns) <= found.wall.bound_ns
    ours = time.monotonic_ns()
    theirs = clock_ns(host)
    assert ours <= theirs - AHEAD_S * 10**9 <= time.monotonic_ns()


def test_agreed_instant(host: Host, tmp_path):
    """Two programs begin at one instant, not before, and report how late they were."""
    offset = host.clocks().monotonic
    at_ns = clocks.agreed(time.monotonic_ns(), {"there": offset}, lead_s=1)["there"]
    script = "import time; print(time.monotonic_ns())"
    files = [tmp_path / "first", tmp_path / "second"]
    started = [
        host.start([PYTHON, "-ISsc", script], at_ns=at_ns, output=file, cpus=[0]) for file in files
    ]
    assert [process.wait() for process in started] == [0, 0]
    for process, file in zip(started, files):
        assert process.late_ns >= 0
        assert int(file.read_text()) >= at_ns + process.late_ns
    # A program that is killed before its start has not begun.
    process = host.start(["true"], at_ns=clock_ns(host) + int(HUNG_S * 1e9))
    process.kill()
    assert process.wait() == -signal.SIGKILL and process.late_ns is None
    assert host.start(["no-such-program"], at_ns=0).wait() in (126, 127)


def test_offset_is_where_all_exchanges_allow_it():
    # Their clock is 100 ahead: slow on the way there, then on the way back.
    assert clocks.offset([(0, 150, 60), (1000, 1105, 1080)]) == Offset(97, 8)
    assert clocks.spanning(Offset(10, 1), Offset(20, 4)) == Offset(16, 8)
    with pytest.raises(UserError, match="a clock was set by 890 ns or more"):
        clocks.offset([(0, 100, 10), (1000, 2000, 1010)])
    offsets = {"a": Offset(5, 1), "b": Offset(-7, 1)}
    assert clocks.agreed(100, offsets) == {"a": 500_000_105, "b": 500_000_093}
    with pytest.raises(ValueError, match=r"must be 0\.5 s ahead"):
        clocks.agreed(0, offsets, lead_s=0.4)
