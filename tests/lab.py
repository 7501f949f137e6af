"""Three machines that know nothing of each other but ssh: a server and two clients; and a fourth
that controls them and has this clone.

Each is namespaces of this machine with a real sshd and a clock of its own, as in `sshd.py`; a
bridge joins them. What the project's set-up would fetch from the network is there beforehand, by an
overlay over this clone's build folder: what a host writes there is its own.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import sshd
from conftest import AS_ROOT, ROOT, Done, Tree, first_line, wait_for

CONTROLLER = "10.78.0.1"
HOSTS = {"server": "10.78.0.2", "client1": "10.78.0.3", "client2": "10.78.0.4"}
AHEAD_S = {"server": 0, "client1": 1000, "client2": 2500}
LINK = "lab0"
COPY = ".local/share/deathmatch/checkout"

# Who is not root may set none; the kernel's own values will do.
SYSCTLS = {"root": '{"net.ipv4.tcp_max_syn_backlog" = 4096}', "user": "{}"}

TESTBED = """
title = "three machines"
kind = "ssh"
descriptors = 65536
sample_interval_s = 0.5

[server]
ssh = "server"
address = "10.78.0.2/24"
cpus = "first"
sysctl = {sysctl}

[client]
cpus = "last"

[[clients]]
ssh = "client1"
address = "10.78.0.3/24"

[[clients]]
ssh = "client2"
address = "10.78.0.4/24"
"""

CONFIG = """
Host server
  HostName 10.78.0.2
Host client1
  HostName 10.78.0.3
Host client2
  HostName 10.78.0.4
Host *
  User {user}
  Port {port}
  IdentityFile {folder}/key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
"""

MOUNTS = """\
mount --bind {own} {home}
mkdir {home}/.local
mount -t tmpfs -o size=200m tmpfs {home}/.local
mkdir -p {home}/{copy}/build
chown -R {login} {home}/.local
mount -t overlay overlay {home}/{copy}/build \
  -o lowerdir={root}/build,upperdir={own}/upper,workdir={own}/work
chown {login} {home}/{copy}/build {home}/{copy}/build/*"""


@dataclass
class Lab:
    """The machines; `tree` is the controller's clone, which runs what it runs beside them."""

    folder: Path
    tree: Tree
    processes: dict[str, psutil.Process]
    entered: dict[str, list[str]]
    user: str

    def running(self, host: str) -> list[psutil.Process]:
        """Return what runs on a host but for its first process and sshd."""
        return sshd.others(self.processes[host])

    def link(self, host: str, state: str) -> None:
        """Set the controller's end of a host's link "up" or "down"."""
        words = [*self.tree.enter, "ip", "link", "set", f"to-{host}", state]
        subprocess.run(words, check=True)

    def on(self, host: str, *words: str) -> str:
        """Run a command in a host's network; return what it printed."""
        done = subprocess.run([*self.entered[host], *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def fill(self, host: str, full: bool) -> None:
        """Leave no room where a host's agent may write, or make room again."""
        inside = [*self.entered[host], "sh", "-c"]
        file = self.folder / f"home-{self.user}" / ".local" / "filling"
        script = f"cat /dev/zero >{file} 2>/dev/null; true" if full else f"rm {file}"
        subprocess.run([*inside, script], check=True)

    def trial(self, path: str, testbed: str = "lab") -> Done:
        """Run a trial on them."""
        return self.tree.deathmatch("trial", path, "--testbed", testbed)


def make(tree: Tree, user: str = "root") -> Iterator[Lab]:
    """Yield a Lab whose controller has `tree`, for a fixture; all ends after it, and with us.

    `user` is who logs in everywhere, "root" or "user".
    """
    folder = Path(tempfile.mkdtemp(prefix="deathmatch-"))
    folder.chmod(0o755)
    name = sshd.files(folder)
    login = "root" if user == "root" else name
    known = (folder / "host_key.pub").read_text().split()[:2]
    (folder / "known_hosts").write_text(
        "".join(f"[{address}]:{sshd.PORT} {' '.join(known)}\n" for address in HOSTS.values())
    )
    (folder / "config").write_text(CONFIG.format(folder=folder, user=login, port=sshd.PORT))
    dying = ["setpriv", "--pdeathsig", "KILL", "--"]
    become = [] if AS_ROOT else ["--user", "--map-root-user"]
    keeper = subprocess.Popen(
        [*dying, "unshare", *become, "--net", "--mount", "sh", "-c",
         "echo ready; exec sleep infinity"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert first_line(keeper) == "ready\n"
    inside = [] if AS_ROOT else ["--user", "--preserve-credentials"]
    controller = ["nsenter", "--target", str(keeper.pid), *inside, "--net", "--"]
    bridge = ["ip", "link", "add", LINK, "type", "bridge"]
    address = ["ip", "address", "add", f"{CONTROLLER}/24", "dev", LINK]
    for words in (
        bridge,
        address,
        ["ip", "link", "set", LINK, "up"],
        ["ip", "link", "set", "lo", "up"],
    ):
        subprocess.run([*controller, *words], check=True)
    started = {
        host: _host(folder, host, controller, user, [*dying, "unshare"]) for host in HOSTS
    }  # fmt: skip
    for host, process in started.items():
        end = f"to-{host}"
        pair = ["ip", "link", "add", end, "type", "veth", "peer", LINK, "netns", str(process.pid)]
        for words in (pair, ["ip", "link", "set", end, "master", LINK, "up"]):
            subprocess.run([*controller, *words], check=True)
        process.stdin.write("joined\n")
        process.stdin.flush()
    for host, process in started.items():
        log = folder / f"{host}.log"
        wait_for(
            lambda log=log, process=process: "Server listening" in log.read_text()
            or process.poll() is not None, "sshd listens",
        )  # fmt: skip
        assert process.poll() is None, log.read_text()
    tree.enter = controller
    tree.environment = {"PATH": f"{_ssh(folder)}:{os.environ['PATH']}"}
    tree.write("config/testbeds/lab.toml", TESTBED.format(sysctl=SYSCTLS[user]))
    entered = {
        host: ["nsenter", "--target", str(process.pid), *inside, "--net", "--mount", "--"]
        for host, process in started.items()
    }
    yield Lab(folder, tree, {h: psutil.Process(p.pid) for h, p in started.items()}, entered, user)
    for process in (*started.values(), keeper):
        process.kill()
        process.wait()
        process.stdout.close()
        if process.stdin:
            process.stdin.close()
    shutil.rmtree(folder)


def _ssh(folder: Path) -> Path:
    """Make the controller's ssh one that reads its user's own configuration; return its folder."""
    program = folder / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/config "$@"\n')
    program.chmod(0o755)
    return program.parent


def _host(
    folder: Path, host: str, controller: list[str], user: str, unshare: list[str]
) -> subprocess.Popen:
    own, home = folder / host, folder / f"home-{user}"
    for path in (own / "upper" / "venv", own / "work"):
        path.mkdir(parents=True)
    # What its set-up would leave: a virtual environment of its own path.
    stamp = (ROOT / "build" / "venv" / "stamp").read_text().partition(" ")[2]
    (own / "upper" / "venv" / "stamp").write_text(f"{home}/{COPY} {stamp}")
    (own / "sshd_config").write_text(
        sshd.SSHD_CONFIG.format(folder=folder).replace(sshd.ADDRESS, HOSTS[host])
    )
    program, variables = sshd.sshd()
    if AS_ROOT and user != "root":
        subprocess.run(["chown", "-R", f"{sshd.USER_ID}:{sshd.USER_ID}", own], check=True)
    mounts = MOUNTS.format(
        own=own, home=home, copy=COPY, root=ROOT,
        login=sshd.USER_ID if AS_ROOT and user != "root" else 0,
    )  # fmt: skip
    script = sshd.SERVE.format(
        folder=folder, own=own, address=HOSTS[host], link=LINK, mounts=mounts, program=program,
        user="" if AS_ROOT else sshd.MAPPED,
    )  # fmt: skip
    time = ["--time", "--monotonic", str(AHEAD_S[host])] if AHEAD_S[host] else []
    process = subprocess.Popen(
        [*controller, *unshare, *sshd.NAMESPACES, *time, "sh", "-ec", script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | variables,
        stderr=(folder / f"{host}.log").open("w"),
    )  # fmt: skip
    assert first_line(process) == "ready\n", (folder / f"{host}.log").read_text()
    return process
