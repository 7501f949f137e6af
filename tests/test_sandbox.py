"""The sandbox: a trial's namespaces and lock end with it, whatever ends it."""

import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace

import pytest
from conftest import (
    AS_ROOT,
    HUNG_S,
    SANDBOXED,
    Done,
    Tree,
    descendant,
    descendants,
    ended,
    first_line,
    network_namespaces,
    own_network_namespaces,
    traces,
    wait_for,
)

# Everything that a trial can leave: a daemon in its own session, a named namespace, mounts, a link.
MESSY = """
setsid sleep infinity &
mount -t tmpfs tmpfs /run && ip netns add left && mount -t tmpfs tmpfs /mnt
ip link add left0 type veth peer left1
ip netns exec left sleep infinity &
echo ready; exec sleep infinity
"""


# The root folder of a rootless container: its /sys is the only one, and belongs to its namespace.
CONTAINER = """
root=$1; shift
mount -t tmpfs tmpfs "$root"; cd "$root"
mkdir sys .old
for place in /*; do
  if [ -L "$place" ]; then cp -P "$place" .
  elif [ -d "$place" ] && [ "$place" != /sys ]; then
    mkdir ".$place"; mount --rbind "$place" ".$place"
  fi
done
mount -t sysfs sysfs sys; mount -t tmpfs tmpfs run
pivot_root . .old; umount -l /.old
exec "$@"
"""


def start(tree: Tree, script: str) -> subprocess.Popen:
    process = tree.start("python", "-c", SANDBOXED, "sh", "-c", script)
    assert first_line(process) == "ready\n"
    return process


def owned(tree: Tree, owner: subprocess.Popen) -> Tree:
    """Return the tree whose commands are to end with `owner`."""
    return replace(tree, environment=tree.environment | {"DEATHMATCH_OWNER": str(owner.pid)})


def test_nothing_survives(someones_tree: Tree, lock_holders):
    for end in ("normal", "killed", "owner killed"):
        check_end(someones_tree, lock_holders, end)


def check_end(tree: Tree, lock_holders: Callable[[], int], end: str) -> None:
    machine = traces()
    owner = subprocess.Popen(["sleep", "infinity"])
    waiting = "until [ -e over ]; do sleep 0.1; done"
    process = start(owned(tree, owner), MESSY.replace("exec sleep infinity", waiting))

    def both_namespaces() -> set[str]:
        found = own_network_namespaces(descendants(process.pid))
        return found if len(found) == 2 else set()

    spaces = wait_for(both_namespaces, "a process in each of two network namespaces")
    inside = descendants(process.pid)
    assert len(inside) >= 4
    assert lock_holders() == 1
    if end == "normal":
        over = tree.write("over", "")
        assert process.wait(HUNG_S) == 0, process.stdout.read()
        over.unlink()
    elif end == "killed":
        # The process that holds the lock, not its wrapper.
        process.kill()
        assert process.wait(HUNG_S) == -signal.SIGKILL
    else:
        owner.kill()
        assert process.wait(HUNG_S) == 1
    wait_for(lambda: ended(inside), f"{inside} ended")
    wait_for(lambda: not spaces & network_namespaces(), "its network namespaces are gone")
    assert lock_holders() == 0 and traces() == machine
    owner.kill()
    owner.wait()


def test_a_sandbox_has_one_user_its_own_processes_and_no_network(someones_tree: Tree):
    space = ("readlink", "/proc/self/ns/net")
    outside = someones_tree.run(*space).succeeded().text.strip()
    script = f"id -u; echo $$; ls -d /proc/[0-9]* | wc -l; ip -o link | wc -l; {' '.join(space)}"
    done = someones_tree.sandboxed("sh", "-c", f"{script}; exit 3")
    assert done.status == 3, done.text
    *counts, inside = done.text.split()
    user, pid, processes, links = map(int, counts)
    assert (user, pid) == (0, 1) and processes <= 5
    assert links == 1 and inside != outside


def test_owner_that_is_dead_already(shared_tree: Tree):
    """Several times: the sandbox is killed while it is being made, at any of its steps."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    tree = owned(shared_tree, dead)
    # `sandboxed` waits for its output to close: a process that is left would hold it open.
    assert [tree.sandboxed("sleep", "infinity").status for _ in range(5)] == [1] * 5


def test_two_at_once_wait_for_the_lock(shared_tree: Tree, lock_holders):
    script = "echo ready; date +%s.%N >>held; sleep 1; date +%s.%N >>held"
    first, second = (
        shared_tree.start("python", "-c", SANDBOXED, "sh", "-c", script) for _ in range(2)
    )
    text = [process.communicate(timeout=HUNG_S)[0] for process in (first, second)]
    assert sorted(line for one in text for line in one.splitlines()) == [
        "ready", "ready", "waiting: another trial holds this machine's testbed",
    ]  # fmt: skip
    times = list(map(float, (shared_tree.path / "held").read_text().split()))
    # Never both at once: each began after the other had ended.
    assert times == sorted(times) and len(times) == 4
    assert lock_holders() == 0


def check_refusal(done: Done) -> None:
    done.failed()
    assert "testbed netns: no permission to make namespaces: unshare" in done.text
    assert "run as root, or let users make namespaces: sysctl" in done.text
    assert "tried" not in done.text


TRY = ["python", "-c", "from deathmatch.hosts import sandbox; from deathmatch import errors\n"
       "errors.run_main(lambda: sandbox.call(lambda: print('tried')))"]  # fmt: skip


def test_kernel_that_forbids_namespaces(shared_tree: Tree):
    """As root of a container without the right, and as a user where users have no right."""
    own = [] if AS_ROOT else ["unshare", "--user", "--map-root-user"]
    check_refusal(shared_tree.run(*own, "setpriv", "--bounding-set", "-sys_admin", "--", *TRY))
    forbid = 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"'
    user = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--keep-caps"]
    done = shared_tree.run(*user, "sh", "-ec", forbid, "sh", *TRY)
    check_refusal(done)
    assert "unshare failed: No space left on device" in done.text


def test_root_of_a_rootless_container_has_a_testbed(shared_tree: Tree, tmp_path):
    """`ip -n` mounts another /sys."""
    root = tmp_path / "root"
    root.mkdir()
    enter = ["unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-ec", CONTAINER]
    words = ["sh", "-ec", "ip netns add below && ip -n below link set lo up && echo up"]
    there = ["sh", "-c", f'cd "{shared_tree.path}" && exec "$@"', "sh"]
    done = shared_tree.run(*enter, "sh", root, *there, "python", "-c", SANDBOXED, *words)
    assert done.succeeded().text.splitlines()[-1] == "up"


def test_build_without_its_tool(shared_tree: Tree):
    script = (
        "from pathlib import Path\nfrom deathmatch.builds import staging\n"
        "from deathmatch import errors\n"
        "errors.run_main(lambda: staging.run(Path('new'), Path('out'), ['echo', 'tried']))"
    )
    done = shared_tree.run("env", "PATH=/nowhere", shutil.which("python"), "-c", script).failed()
    assert "setpriv is not installed\n  run inside ./shell" in done.text


@pytest.mark.parametrize("lacking", ["", "del os.pidfd_open"])
def test_a_process_outside_a_sandbox_ends_with_its_owner(shared_tree: Tree, lacking):
    """With Linux's own notice of an end, and without, as on macOS."""
    owner = shared_tree.start("sleep", "infinity")
    script = (
        f"import os, subprocess\n{lacking}\nfrom deathmatch.hosts import sandbox\n"
        "sandbox.die_with_owner()\nsubprocess.run(['sleep', 'infinity'])"
    )
    process = owned(shared_tree, owner).start("python", "-c", script)
    wait_for(lambda: descendant(process.pid, "sleep"), "its child runs")
    seen = descendants(process.pid)
    owner.kill()
    owner.wait()
    wait_for(lambda: ended(seen) and process.poll() is not None, "it and its child ended")
