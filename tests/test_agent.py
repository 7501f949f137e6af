"""An agent's session: it begins or reports why it cannot, and leaves nothing, however it ends."""

import json
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import sshd
from conftest import AS_ROOT, ROOT, ended, first_line, kept, kill, matching, wait_for
from sshd import PATIENCE_S, PYTHON, SETTING, SOMEONE, Machines, connect

from deathmatch.agent import journal, session
from deathmatch.agent.keeper import Settings
from deathmatch.errors import UserError
from deathmatch.hosts import opening
from deathmatch.hosts.connection import HostLost
from deathmatch.hosts.host import Host


@pytest.fixture(scope="module")
def machines():
    yield from sshd.make()


CONTROLLER = """
import json, sys
from deathmatch.hosts import opening
someone, python, *program = sys.argv[1:]
host = opening.ssh(someone, python=python, program=program)
host.start(["sh", "-c", "setsid sleep infinity & exec sleep infinity"])
print("ready", flush=True)
sys.stdin.read()
"""


def change(host: Host) -> None:
    """Change what a run changes, and let a program leave a daemon behind."""
    host.start(["sh", "-c", "setsid sleep infinity & echo; exec sleep infinity"], talk=True)
    try:
        host.set_sysctls({SETTING: 77})
        host.set_sysctls({SETTING: 78})
    except UserError as error:
        assert "cannot be set: Permission denied\n  log in there as root" in str(error)


def agents(machines: Machines) -> list[psutil.Process]:
    """Return the keeper and the session, as the tests see them."""
    found = matching(machines.running(), "deathmatch.agent")
    assert len(found) == 2
    (session,) = matching(found, "--session")
    return [one for one in found if one != session] + [session]


def ssh_of(host: Host) -> psutil.Process:
    return psutil.Process(host.agent._popen.pid)


PATH = "/proc/sys/net/core/somaxconn"
ENDS = ["closed", "ssh killed", "session killed", "keeper told to end", "link down"]


@pytest.mark.parametrize(
    ("someone", "end"),
    [(SOMEONE[0], end) for end in ENDS]
    # Another user's namespaces end alike.
    + [(someone, "ssh killed") for someone in SOMEONE[1:]],
)
def test_nothing_survives(machines: Machines, someone, end):
    before = machines.sysctl(SETTING)
    # The default where silence is what ends it.
    silent = {"silence_s": 4.0} if end == "link down" else {}
    host = connect(machines, someone, **silent)
    change(host)
    daemons = wait_for(
        lambda: len(found := machines.running()) >= 4 and found, "agent, program and daemon run"
    )
    may = someone == "root"
    assert machines.sysctl(SETTING) == ("78" if may else before)
    keeper, session = agents(machines)
    process = host.start(["sleep", "infinity"])
    if end == "closed":
        over = host.close()
        assert over["status"] == 0 and over["failed"] == []
        assert over["restored"] == ([PATH] if may else [])
    elif end == "ssh killed":
        ssh_of(host).kill()
    elif end == "session killed":
        session.kill()
    elif end == "keeper told to end":
        keeper.terminate()
    else:
        machines.link("down")
    with pytest.raises(HostLost, match=f"host {someone}: "):
        process.wait()
    wait_for(lambda: ended(daemons) and machines.running() == [], "nothing runs there")
    assert machines.sysctl(SETTING) == before
    assert list(machines.home(someone).rglob("run-*")) == []
    if end == "link down":
        machines.link("up")
    with pytest.raises(HostLost):
        host.run("true")
    host.close()


def test_controller_that_is_killed(machines: Machines):
    words = [sys.executable, "-c", CONTROLLER, SOMEONE[0], PYTHON, *machines.ssh]
    controller = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert first_line(controller) == "ready\n"
    running = wait_for(lambda: len(found := machines.running()) >= 4 and found, "all run")
    kill(controller)
    wait_for(lambda: ended(running) and machines.running() == [], "nothing runs there")


def test_keeper_that_is_killed(machines: Machines):
    """The next connection restores the settings, and reports it."""
    someone, before = SOMEONE[0], machines.sysctl(SETTING)
    host = connect(machines, someone)
    change(host)
    running = machines.running()
    agents(machines)[0].kill()
    wait_for(lambda: ended(running) and machines.running() == [], "nothing runs there")
    may = someone == "root"
    assert machines.sysctl(SETTING) == ("78" if may else before)
    assert len(list(machines.home(someone).rglob("run-*"))) == 1
    host.close()
    said: list[str] = []
    with connect(machines, someone, tell=said.append):
        assert machines.sysctl(SETTING) == before
    told = f"host {someone}: restored {PATH}, which a killed run had changed"
    assert said == ([told] if may else [])
    assert list(machines.home(someone).rglob("run-*")) == []


def test_journal_whose_last_line_is_torn(tmp_path):
    """The agent was killed while it noted a change, before it made the change."""
    path = "/proc/sys/kernel/random/boot_id"
    before = Path(path).read_text().strip()
    (tmp_path / journal.JOURNAL).write_text(
        json.dumps({"path": path, "before": before}) + '\n{"path": "/proc/sys/ke'
    )
    assert journal.Journal(tmp_path).restore() == {"restored": [], "failed": []}
    refused = {"path": path, "before": "another"}
    (tmp_path / journal.JOURNAL).write_text(json.dumps(refused) + "\n")
    assert len(journal.Journal(tmp_path).restore()["failed"]) == 1
    assert json.loads((tmp_path / journal.JOURNAL).read_text()) == refused
    with pytest.raises(ValueError, match=re.escape(str(tmp_path / "file"))):
        journal.Journal(tmp_path).set({str(tmp_path / "file"): "1"})


def test_first_connection_sets_up_and_says_so(machines: Machines):
    """That user's shell also prints before the agent does."""
    someone = "user"
    said: list[str] = []
    folder = "a folder/of mine"
    for _ in range(2):
        with connect(machines, someone, folder=folder, tell=said.append) as host:
            home = machines.home(someone)
            assert host.folder.is_relative_to(home / folder)
    made = f"{folder}/agent-{session.digest()}"
    assert said == [
        f"host {someone}: first connection of this version, copying the agent to {someone}:{made}"
    ]
    with (home / made / "deathmatch" / "agent" / "wire.py").open("a") as file:
        file.write("\n")
    removing = f"rm -r '{made}'"
    with pytest.raises(UserError) as error:
        connect(machines, someone, folder=folder)
    assert str(error.value) == (
        f"host {someone}: the agent's files there are not those that were copied\n"
        f"  remove them, they are copied again: ssh {someone} {shlex.quote(removing)}"
    )


@pytest.mark.parametrize(
    ("alias", "options", "what", "remedy"),
    [
        ("nowhere", {}, "ssh knows no such host: ssh: Could not resolve hostname nowhere.invalid",
         "write a section `Host nowhere` with its HostName into ~/.ssh/config"),
        ("stranger", {}, "its host key is not the one known, or none is known",
         "run `ssh stranger` once by hand and compare the key"),
        ("keyless", {}, "it refuses every key that ssh offers: ", "`ssh-copy-id keyless`"),
        ("closed", {}, "it cannot be reached: ssh: connect to host", "see whether it is up"),
        ("user", {"python": "python9.9"}, "there is no python9.9 there", "install Python 3.11"),
        ("user", {"python": "true"}, "no agent answered", "see what `ssh user true` says"),
        ("user", {"folder": "/proc/there"}, "the agent cannot be copied there: mkdir: ",
         "name a folder that `ssh user` may write to"),
        ("user", {"program": ["/no/ssh"]}, "/no/ssh is not installed", "install OpenSSH's client"),
    ],
)  # fmt: skip
def test_faults_are_reported_with_a_remedy(machines: Machines, alias, options, what, remedy):
    with pytest.raises(UserError) as error:
        connect(machines, alias, **options)
    assert str(error.value).startswith(f"host {alias}: {what}")
    assert f"\n  {remedy}" in str(error.value)


def test_two_controllers_are_kept_apart(machines: Machines):
    """Also where they are different users."""
    with connect(machines, SOMEONE[0]) as host:
        with pytest.raises(UserError, match=r"another controller holds this host\n  wait for it"):
            opening.ssh("user", python=PYTHON, program=machines.ssh, wait_s=0)
        assert host.run("echo", "undisturbed") == "undisturbed\n"


def entering(keeper: subprocess.Popen, *namespaces: str) -> list[str]:
    """Return the words that enter those namespaces of a process."""
    preserved = ["--preserve-credentials"] if "user" in namespaces else []
    return [
        "nsenter",
        "--target",
        str(keeper.pid),
        *(f"--{name}" for name in namespaces),
        *preserved,
    ]


def test_host_that_forbids_namespaces(tmp_path):
    forbid = "echo 0 >/proc/sys/user/max_user_namespaces"
    user = ["--user", "--map-user=1000", "--map-group=1000", "--keep-caps"]
    with kept(*user, "--net", first=forbid) as keeper, pytest.raises(UserError) as error:
        opening.through("there", entering(keeper, "user", "net"), Settings(str(tmp_path)))
    problem = (
        "host there: no permission to make namespaces there: unshare: unshare failed: No space"
    )
    assert str(error.value).startswith(problem)
    assert "\n  log in there as root, or let users make namespaces: sysctl" in str(error.value)


def test_namespaces_of_this_machine(tmp_path):
    """The same agent by nsenter, as root or in a user namespace."""
    user = [] if AS_ROOT else ["user"]
    become = [] if AS_ROOT else ["--user", "--map-root-user"]
    settings = Settings(str(tmp_path), PATIENCE_S)
    with kept(*become, "--net", "--uts", first="hostname inside") as keeper:
        with opening.through("there", entering(keeper, "net", "uts", *user), settings) as host:
            assert host.run("hostname") == "inside\n" != socket.gethostname()
            assert host.command(["true"], [0])[-4:] == ["taskset", "--cpu-list", "0", "true"]
            before = host.sysctls([SETTING])
            host.set_sysctls({SETTING: 99})
            assert host.sysctls([SETTING]) == {SETTING: "99"} != before
            shown = host.run("ip", "-o", "link")
            assert shown.startswith("1: lo") and shown.count("\n") == 1
            found = host.clocks()
            assert abs(found.monotonic.ns) <= found.monotonic.bound_ns
            host.start(["setsid", "sleep", "infinity"])
            children = psutil.Process(host.agent._popen.pid).children(recursive=True)
            over = host.close()
        assert over["restored"] == [PATH] and ended(children)
    with pytest.raises(UserError, match=r"host there: `nsenter .* enters no host: nsenter"):
        opening.through("there", entering(keeper, "net"), settings)
