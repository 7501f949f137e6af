"""Three machines that know nothing of each other but ssh: a server and two clients; and a fourth
that controls them and has this clone.

Each is namespaces of this machine with a real sshd and a clock of its own, as in `sshd.py`; a
bridge joins them. What the project's set-up would fetch from the network is there beforehand, by an
overlay over this clone's build folder: what a host writes there is its own.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import sshd
from conftest import AS_ROOT, ROOT, Done, Tree

HOSTS = {"server": "10.78.0.2", "client1": "10.78.0.3", "client2": "10.78.0.4"}
AHEAD_S = {"server": 0, "client1": 1000, "client2": 2500}
COPY = ".local/share/deathmatch/checkout"

# A user may set none; the kernel's own values will do.
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
# Locks of builds in this clone may be root's.
rm -rf {home}/{copy}/build/aside
chown {login} {home}/{copy}/build {home}/{copy}/build/*"""


@dataclass
class Lab(sshd.Machines):
    """The machines; `tree` is the controller's clone, which runs what it runs beside them."""

    tree: Tree
    user: str

    def fill(self, host: str, full: bool) -> None:
        """Leave no room where a host's agent may write, or make room again."""
        file = self.home(self.user) / ".local" / "filling"
        script = f"cat /dev/zero >{file} 2>/dev/null; true" if full else f"rm {file}"
        self.on(host, "sh", "-c", script)

    def trial(self, path: str) -> Done:
        """Run a trial on them."""
        return self.tree.deathmatch("trial", path, "--testbed", "lab")


def make(tree: Tree, user: str = "root") -> Iterator[Lab]:
    """Yield a Lab whose controller has `tree`, for a fixture.

    `user` is who logs in everywhere, "root" or "user".
    """
    login = sshd.USER_ID if AS_ROOT and user != "root" else 0

    def mounts(folder: Path, own: Path) -> str:
        home = folder / f"home-{user}"
        for path in (own / "upper" / "venv", own / "work"):
            path.mkdir(parents=True)
        # Its set-up would leave a virtual environment of its own path.
        stamp = (ROOT / "build" / "venv" / "stamp").read_text().partition(" ")[2]
        (own / "upper" / "venv" / "stamp").write_text(f"{home}/{COPY} {stamp}")
        if login:
            subprocess.run(["chown", "-R", f"{login}:{login}", own], check=True)
        return MOUNTS.format(own=own, home=home, copy=COPY, root=ROOT, login=login)

    with sshd.machines(HOSTS, AHEAD_S, mounts) as made:
        folder = made.folder
        name = "root" if user == "root" else sshd.USER
        (folder / "config").write_text(CONFIG.format(folder=folder, user=name, port=sshd.PORT))
        # The controller's ssh reads its user's own configuration.
        program = folder / "bin" / "ssh"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/config "$@"\n')
        program.chmod(0o755)
        tree.enter = made.controller
        tree.environment = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
        tree.write("config/testbeds/lab.toml", TESTBED.format(sysctl=SYSCTLS[user]))
        yield Lab(**vars(made), tree=tree, user=user)
