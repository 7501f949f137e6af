"""A cluster: SLURM's own daemons, a machine to log in and three nodes, in some two seconds.

Each node is a network, a mount, a process and a name of its own: no pid, no lock and no process of
the controller exists there. They share this machine's files, and its CPUs. All of it ends after
the test, and with this process. Root only: slurmd starts jobs as their user.
"""

import os
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psutil
from conftest import DYING, ROOT, first_line, kill, wait_for
from sshd import LINK, join, others

UNPACKED = ROOT / "build" / "slurm"
NETWORK = "10.79.0"
NODES = {"n1": 11, "n2": 12, "n3": 13}
DAEMONS = ("slurmd-wlm", "slurmstepd-wlm", "unshare", "sh")

SLURM_CONF = """
ClusterName=test
SlurmctldHost=login({network}.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_interval=1
SlurmdParameters=config_overrides
KillWait=2
UnkillableStepTimeout=600
SlurmdTimeout=600
{nodes}
PartitionName=test Nodes=ALL Default=YES OverSubscribe=NO MaxTime=INFINITE State=UP
"""


@dataclass
class Cluster:
    """`login` are words before a command that runs where one logs in; nodes by their names."""

    folder: Path
    login: list[str]
    nodes: dict[str, psutil.Process]

    def slurm(self, *words: str) -> str:
        """Run a command of SLURM; return what it printed."""
        done = subprocess.run([*self.login, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def jobs(self) -> list[str]:
        """Return the ids of the jobs that wait or run."""
        return self.slurm("squeue", "--noheader", "--format=%i").split()

    def running(self) -> list[str]:
        """Return the names of what runs on the nodes but for SLURM's daemons."""
        return [one.name() for node in self.nodes.values() for one in others(node, *DAEMONS)]


def _files(folder: Path) -> None:
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    for name in ("state", "work", "etc/slurm", *NODES):
        (folder / name).mkdir(parents=True)
    nodes = "\n".join(
        f"NodeName={name} NodeAddr={NETWORK}.{number} CPUs={os.cpu_count()} RealMemory=8000"
        for name, number in NODES.items()
    )
    (folder / "etc" / "slurm" / "slurm.conf").write_text(
        SLURM_CONF.format(network=NETWORK, folder=folder, nodes=nodes)
    )
    (folder / "etc" / "hosts").write_text(
        "127.0.0.1 localhost\n"
        + "".join(f"{NETWORK}.{at} {name}\n" for name, at in (NODES | {"login": 1}).items())
    )


CONTROL = """
hostname login
mount -t overlay overlay -o lowerdir={unpacked}/usr:/usr /usr
mount -t overlay overlay -o lowerdir={unpacked}/lib:/usr/lib /usr/lib
mount -t overlay overlay -o lowerdir=/etc,upperdir={folder}/etc,workdir={folder}/work /etc
ip link set lo up
ip link add {bridge} type bridge
ip address add {network}.1/24 dev {bridge}
ip link set {bridge} up
munged --foreground --force --num-threads=2 --socket={folder}/munge.socket \
  --key-file={folder}/munge.key --pid-file={folder}/munge.pid --log-file={folder}/munge.log \
  --seed-file={folder}/munge.seed &
slurmctld-wlm -D -c &
echo ready
wait
"""

NODE = """
hostname {name}
echo ready
read joined
ip link set lo up
ip address add {network}.{number}/24 dev {bridge}
ip link set {bridge} up
ip route add default via {network}.1
exec slurmd-wlm -D -N {name} -d /usr/sbin/slurmstepd-wlm
"""


def make():
    """Yield a Cluster, for a fixture; everything ends after it, and with this process."""
    folder = Path(tempfile.mkdtemp(prefix="deathmatch-"))
    folder.chmod(0o755)
    _files(folder)
    names = {"folder": folder, "bridge": LINK, "network": NETWORK, "unpacked": UNPACKED}
    log = (folder / "daemons.log").open("w")

    def start(words: list[str], script: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [*words, "sh", "-ec", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=log, text=True,
        )  # fmt: skip
        assert first_line(process) == "ready\n", (folder / "daemons.log").read_text()
        return process

    spaces = ["--mount", "--net", "--uts"]
    pids = ["--pid", "--fork", "--kill-child"]
    # A login keeps its own pids, and the /proc that shows them.
    control = start([*DYING, "unshare", *spaces, *pids], CONTROL.format(**names))
    entered = ["nsenter", "--target", str(control.pid), *spaces, "--"]
    nodes = {}
    for name, number in NODES.items():
        own = [*spaces, *pids, "--mount-proc"]
        node = start(
            [*entered, *DYING, "unshare", *own], NODE.format(name=name, number=number, **names)
        )
        join(entered, name, node)
        nodes[name] = node
    # nsenter would begin in the root folder.
    keeping = f'exec {shlex.join(entered[:-1])} --wdns="$(pwd -P)" -- "$@"'
    processes = {name: psutil.Process(each.pid) for name, each in nodes.items()}
    cluster = Cluster(folder, ["sh", "-c", keeping, "sh"], processes)
    up = ["sinfo", "--noheader", "--states=idle", "--Node", "--format=%N"]

    def idle() -> bool:
        done = subprocess.run([*entered, *up], capture_output=True, text=True)
        return len(done.stdout.split()) == len(NODES)

    wait_for(idle, "its nodes are idle")
    yield cluster
    kill(*nodes.values(), control)
    log.close()
    shutil.rmtree(folder)
