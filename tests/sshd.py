"""Two machines that know nothing of each other but ssh, made of namespaces in some two seconds.

The controller's has a network of its own; the host's a network, mounts, processes and a monotonic
clock a thousand seconds ahead, and a real sshd. A veth pair joins them. As an ordinary user all of
it is in a user namespace, and one can log in as that user only.
"""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psutil
from conftest import AS_ROOT, ROOT, descendants, first_line, wait_for

from deathmatch.hosts import opening
from deathmatch.hosts.host import Host

AHEAD_S = 1000
ADDRESS = "10.78.0.2"
# One that an ordinary user's sshd may have.
PORT = 2222
LINK = "agent0"
USER_ID = 54321
# The interpreter without the study's packages.
PYTHON = os.path.realpath(sys.executable)
# Whom one can be on the host, and a patience that no busy machine uses up.
SOMEONE = ["root", "user"] if AS_ROOT else ["user"]
PATIENCE_S = 600.0
SETTING = "net.core.somaxconn"
NOISE = "echo welcome\nprintf '{\"hello\": '\n"

# The first value that ssh finds holds, but for keys, which add up.
CONFIG = f"""
Host root
  User root
Host user stranger keyless closed
  User {{user}}
Host root user stranger closed
  IdentityFile {{folder}}/key
Host keyless
  IdentityFile {{folder}}/other_key
Host nowhere
  HostName nowhere.invalid
Host stranger
  UserKnownHostsFile /dev/null
Host closed
  Port 1
Host *
  HostName {ADDRESS}
  Port {PORT}
  IdentitiesOnly yes
  UserKnownHostsFile {{folder}}/known_hosts
  GlobalKnownHostsFile /dev/null
"""

SSHD_CONFIG = f"""
ListenAddress {ADDRESS}
Port {PORT}
HostKey {{folder}}/host_key
AuthorizedKeysFile {{folder}}/key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
SetEnv PATH={os.environ["PATH"]}
"""


@dataclass
class Machines:
    """The controller's side as words before a command; the host's as a process and its sshd."""

    folder: Path
    controller: list[str]
    host: list[str]
    process: psutil.Process

    @property
    def ssh(self) -> list[str]:
        """ssh as the controller's user runs it, with a configuration of that user's own."""
        return [*self.controller, "ssh", "-F", str(self.folder / "config")]

    def home(self, someone: str) -> Path:
        """Return the home of "root" or "user" on the host."""
        return self.folder / f"home-{someone}"

    def link(self, state: str) -> None:
        """Set the controller's end of the link "up" or "down"."""
        subprocess.run([*self.controller, "ip", "link", "set", LINK, state], check=True)

    def running(self) -> list[psutil.Process]:
        """Return what runs on the host but for its first process and sshd."""
        return others(self.process)

    def sysctl(self, key: str) -> str:
        """Return a setting in force on the host."""
        words = [*self.host, "cat", f"/proc/sys/{key.replace('.', '/')}"]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def others(first: psutil.Process) -> list[psutil.Process]:
    """Return what runs below a host's first process, but for that and sshd."""
    found = []
    for process in descendants(first.pid):
        try:
            name, status = process.name(), process.status()
        except psutil.NoSuchProcess:
            continue
        if name not in ("sshd", "unshare", "sh") and status != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def sshd() -> tuple[str, dict[str, str]]:
    """Return sshd and the variables that it needs to run: that on PATH, or ./shell's."""
    if found := shutil.which("sshd"):
        return os.path.realpath(found), {}
    unpacked = ROOT / "build" / "sshd" / "usr"
    libraries = ":".join(str(path) for path in unpacked.glob("lib/*-linux-gnu*"))
    return str(unpacked / "sbin" / "sshd"), {"LD_LIBRARY_PATH": libraries}


def files(folder: Path) -> str:
    """Write keys, configurations and homes; return the name of the user who is not root."""
    for key in ("key", "other_key", "host_key"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(words, check=True)
    user = "tester" if AS_ROOT else pwd.getpwuid(os.geteuid()).pw_name
    user_id, group_id = (USER_ID, USER_ID) if AS_ROOT else (os.geteuid(), os.getegid())
    for someone in ("root", "user"):
        (folder / f"home-{someone}").mkdir()
    if AS_ROOT:
        os.chown(folder / "home-user", user_id, group_id)
    (folder / "home-user" / ".bashrc").write_text(NOISE)
    (folder / "passwd").write_text(
        f"root:x:0:0::{folder}/home-root:/bin/sh\nsshd:x:65000:65000::/:/bin/false\n"
        f"{user}:x:{user_id}:{group_id}::{folder}/home-user:{shutil.which('bash')}\n"
    )
    (folder / "shadow").write_text(f"root:*:1::::::\nsshd:*:1::::::\n{user}:*:1::::::\n")
    known = (folder / "host_key.pub").read_text().split()[:2]
    (folder / "known_hosts").write_text(f"[{ADDRESS}]:{PORT} {' '.join(known)}\n")
    (folder / "config").write_text(CONFIG.format(folder=folder, user=user))
    (folder / "sshd_config").write_text(SSHD_CONFIG.format(folder=folder))
    return user


# What a host runs in its namespaces, with mounts of its own, and as whom sshd runs there.
SERVE = """
mount --bind {folder}/passwd /etc/passwd
mount --bind {folder}/shadow /etc/shadow
{mounts}
mount -t tmpfs tmpfs /run
mkdir -m 755 /run/sshd
echo ready
read joined
ip link set lo up
ip address add {address}/24 dev {link}
ip link set {link} up
{user}{program} -D -e -f {own}/sshd_config &
wait
"""
NAMESPACES = ["--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
MAPPED = f"unshare --user --map-user={os.geteuid()} --map-group={os.getegid()} "


def make():
    """Yield Machines, for a fixture; everything ends after it, and with this process."""
    folder = Path(tempfile.mkdtemp(prefix="deathmatch-"))
    folder.chmod(0o755)
    files(folder)
    program, variables = sshd()
    dying = ["setpriv", "--pdeathsig", "KILL", "--"]
    become = [] if AS_ROOT else ["--user", "--map-root-user"]
    keeper = subprocess.Popen(
        [*dying, "unshare", *become, "--net", "sh", "-c", "echo ready; exec sleep infinity"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert first_line(keeper) == "ready\n"
    inside = [] if AS_ROOT else ["--user", "--preserve-credentials"]
    controller = ["nsenter", "--target", str(keeper.pid), *inside, "--net", "--"]
    script = SERVE.format(
        folder=folder, own=folder, address=ADDRESS, link=LINK, mounts="", program=program,
        user="" if AS_ROOT else MAPPED,
    )  # fmt: skip
    host = subprocess.Popen(
        [*controller, *dying, "unshare", *NAMESPACES, "--time", "--monotonic", str(AHEAD_S),
         "sh", "-ec", script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | variables,
        stderr=(folder / "sshd.log").open("w"),
    )  # fmt: skip
    assert first_line(host) == "ready\n", (folder / "sshd.log").read_text()
    links = ["ip", "link", "add", LINK, "type", "veth", "peer", LINK, "netns", str(host.pid)]
    for words in (
        links,
        ["ip", "address", "add", "10.78.0.1/24", "dev", LINK],
        ["ip", "link", "set", LINK, "up"],
        ["ip", "link", "set", "lo", "up"],
    ):
        subprocess.run([*controller, *words], check=True)
    host.stdin.write("joined\n")
    host.stdin.flush()
    inside_host = ["nsenter", "--target", str(host.pid), *inside, "--net", "--"]
    log = folder / "sshd.log"
    wait_for(
        lambda: "Server listening" in log.read_text() or host.poll() is not None, "sshd listens"
    )
    assert host.poll() is None, log.read_text()
    yield Machines(folder, controller, inside_host, psutil.Process(host.pid))
    for process in (host, keeper):
        process.kill()
        process.wait()
        process.stdout.close()
    host.stdin.close()
    shutil.rmtree(folder)


def connect(machines: Machines, someone: str, **options) -> Host:
    """Connect with a patience that no busy machine uses up, unless the test is about that."""
    options = {"python": PYTHON, "program": machines.ssh, "silence_s": PATIENCE_S} | options
    return opening.ssh(someone, wait_s=PATIENCE_S, **options)
