"""Machines that know nothing of each other but ssh, made of namespaces in some two seconds.

The controller's has a network of its own; a host's a network, mounts, processes and a monotonic
clock a thousand seconds ahead, and a real sshd. A bridge joins them. As an ordinary user all of
it is in a user namespace, and one can log in as that user only.
"""

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from conftest import AS_ROOT, DYING, INSIDE, ROOT, descendants, first_line, kept, kill, wait_for

from deathmatch.hosts import opening
from deathmatch.hosts.host import Host

AHEAD_S = 1000
CONTROLLER, ADDRESS = "10.78.0.1", "10.78.0.2"
# One that an ordinary user's sshd may have.
PORT = 2222
LINK = "agent0"
# The user who is not root.
USER_ID = 54321
USER = "tester" if AS_ROOT else pwd.getpwuid(os.geteuid()).pw_name
# The interpreter without the study's packages.
PYTHON = os.path.realpath(sys.executable)
# The users of the host, and a time-out that is enough on a busy machine.
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
ListenAddress {{address}}
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
    """The hosts' first processes by name; words before a command of the controller and of each."""

    folder: Path
    controller: list[str]
    processes: dict[str, psutil.Process]
    entered: dict[str, list[str]]

    @property
    def ssh(self) -> list[str]:
        """ssh as the controller's user runs it, with a configuration of that user's own."""
        return [*self.controller, "ssh", "-F", str(self.folder / "config")]

    def home(self, someone: str) -> Path:
        """Return the home of "root" or "user" on the hosts."""
        return self.folder / f"home-{someone}"

    def link(self, state: str, host: str = "host") -> None:
        """Set the controller's end of a host's link "up" or "down"."""
        words = [*self.controller, "ip", "link", "set", f"to-{host}", state]
        subprocess.run(words, check=True)

    def running(self, host: str = "host") -> list[psutil.Process]:
        """Return what runs on a host but for its first process and sshd."""
        return others(self.processes[host], "sshd", "unshare", "sh")

    def on(self, host: str, *words: str) -> str:
        """Run a command in a host's network; return what it printed."""
        done = subprocess.run([*self.entered[host], *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def sysctl(self, key: str) -> str:
        """Return a setting in force on the host."""
        return self.on("host", "cat", f"/proc/sys/{key.replace('.', '/')}")


def others(first: psutil.Process, *names: str) -> list[psutil.Process]:
    """Return what runs below a host's first process and has none of these names."""
    found = []
    for process in descendants(first.pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.name() not in names and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def sshd() -> tuple[str, dict[str, str]]:
    """Return sshd and the variables that it needs to run: that on PATH, or ./shell's."""
    if found := shutil.which("sshd"):
        return os.path.realpath(found), {}
    unpacked = ROOT / "build" / "sshd" / "usr"
    libraries = ":".join(str(path) for path in unpacked.glob("lib/*-linux-gnu*"))
    return str(unpacked / "sbin" / "sshd"), {"LD_LIBRARY_PATH": libraries}


def files(folder: Path, addresses: Iterable[str]) -> None:
    """Write keys, configurations and homes."""
    for key in ("key", "other_key", "host_key"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(words, check=True)
    user_id, group_id = (USER_ID, USER_ID) if AS_ROOT else (os.geteuid(), os.getegid())
    for someone in ("root", "user"):
        (folder / f"home-{someone}").mkdir()
    if AS_ROOT:
        os.chown(folder / "home-user", user_id, group_id)
    (folder / "home-user" / ".bashrc").write_text(NOISE)
    (folder / "passwd").write_text(
        f"root:x:0:0::{folder}/home-root:/bin/sh\nsshd:x:65000:65000::/:/bin/false\n"
        f"{USER}:x:{user_id}:{group_id}::{folder}/home-user:{shutil.which('bash')}\n"
    )
    (folder / "shadow").write_text(f"root:*:1::::::\nsshd:*:1::::::\n{USER}:*:1::::::\n")
    known = (folder / "host_key.pub").read_text()
    (folder / "known_hosts").write_text(
        "".join(f"[{address}]:{PORT} {known}" for address in addresses)
    )
    (folder / "config").write_text(CONFIG.format(folder=folder, user=USER))


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


@contextlib.contextmanager
def machines(
    addresses: dict[str, str], ahead_s: dict[str, int], mounts: Callable[[Path, Path], str]
) -> Iterator[Machines]:
    """Machines for the time of the block, each with a folder of its own; they end with us, too."""
    folder = Path(tempfile.mkdtemp(prefix="deathmatch-"))
    folder.chmod(0o755)
    files(folder, addresses.values())
    program, variables = sshd()
    become = [] if AS_ROOT else ["--user", "--map-root-user"]
    with kept(*become, "--net") as keeper:
        controller = ["nsenter", "--target", str(keeper.pid), *INSIDE, "--net", "--"]
        bridge(controller)
        started = {}
        for name, address in addresses.items():
            own = folder / name
            own.mkdir()
            (own / "sshd_config").write_text(SSHD_CONFIG.format(folder=folder, address=address))
            script = SERVE.format(
                folder=folder, own=own, address=address, link=LINK, program=program,
                mounts=mounts(folder, own), user="" if AS_ROOT else MAPPED,
            )  # fmt: skip
            clock = ["--time", "--monotonic", str(ahead_s[name])]
            started[name] = subprocess.Popen(
                [*controller, *DYING, "unshare", *NAMESPACES, *clock, "sh", "-ec", script],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env=os.environ | variables, stderr=(folder / f"{name}.log").open("w"),
            )  # fmt: skip
            log = (folder / f"{name}.log").read_text
            assert first_line(started[name]) == "ready\n", log()
            join(controller, name, started[name])
            wait_for(
                lambda log=log: "Server listening" in log(),
                f"{folder}: sshd listens",
                started[name],
            )
        entered = {
            name: ["nsenter", "--target", str(process.pid), *INSIDE, "--net", "--mount", "--"]
            for name, process in started.items()
        }
        processes = {name: psutil.Process(process.pid) for name, process in started.items()}
        yield Machines(folder, controller, processes, entered)
        kill(*started.values())
    shutil.rmtree(folder)


def bridge(controller: list[str]) -> None:
    """Make the bridge that the hosts are to join."""
    for words in (
        ["link", "add", LINK, "type", "bridge"],
        ["address", "add", f"{CONTROLLER}/24", "dev", LINK],
        ["link", "set", LINK, "up"],
        ["link", "set", "lo", "up"],
    ):
        subprocess.run([*controller, "ip", *words], check=True)


def join(controller: list[str], name: str, host: subprocess.Popen) -> None:
    """Join a host, which waits for it, to the bridge by a link `to-NAME`."""
    peer = ["peer", LINK, "netns", str(host.pid)]
    for words in (
        ["link", "add", f"to-{name}", "type", "veth", *peer],
        ["link", "set", f"to-{name}", "master", LINK, "up"],
    ):
        subprocess.run([*controller, "ip", *words], check=True)
    host.stdin.write("joined\n")
    host.stdin.flush()


def make() -> Iterator[Machines]:
    """Yield a controller and one host, for a fixture."""
    with machines({"host": ADDRESS}, {"host": AHEAD_S}, lambda folder, own: "") as made:
        yield made


def connect(machines: Machines, someone: str, **options) -> Host:
    """Connect with a patience that no busy machine uses up, unless the test is about that."""
    options = {"python": PYTHON, "program": machines.ssh, "silence_s": PATIENCE_S} | options
    return opening.ssh(someone, wait_s=PATIENCE_S, **options)
