"""The netns testbed: two namespaces, each with its own settings, as root and as a user."""

import json
import os
import resource
import subprocess
import sys

import pytest
from conftest import ROOT, Tree
from hypothesis import given
from hypothesis import strategies as st

from deathmatch.errors import UserError
from deathmatch.hosts import testbed
from deathmatch.hosts.host import Local
from deathmatch.plan import files

# Runs inside a sandbox and prints what it finds.
INSIDE = """
import json, socket
from pathlib import Path
from deathmatch.hosts import testbed
from deathmatch.hosts.host import Local
from deathmatch.plan import files
bed = files.testbed("netns")
hosts = testbed.build(bed, {"net.core.somaxconn": 128, "net.ipv4.no_such_setting": 1})
server, (client,) = hosts.server, hosts.clients
found = {
    "server": server.sysctls([*bed.server.sysctl, "net.ipv4.no_such_setting"]),
    "client": client.sysctls(bed.client.sysctl),
    "namespaces": len({Path(f"/proc/{pid}/ns/net").readlink()
                       for pid in ("self", *hosts.own_pids())}),
    "descriptors": server.raise_descriptors(bed.descriptors),
}
listener = socket.create_server((hosts.address, 8080))
script = "import socket; print(socket.create_connection(('%s', 8080)).getsockname()[0])"
found["client address"] = client.run("python3", "-c", script % hosts.address).strip()
found["peer"] = listener.accept()[1][0]
found["opens"] = {side: host.counters()["snmp"]["Tcp", name] for side, host, name in
                  (("server", server, "PassiveOpens"), ("client", client, "ActiveOpens"))}
before = server.set_sysctls({"net.core.somaxconn": 64, "net.ipv4.no_such_setting": 1})
found["set"] = server.sysctls(before)
server.set_sysctls(before)
found["restored"] = server.sysctls(before)
print(json.dumps(found))
hosts.end()
"""


def test_both_sides_have_their_own_settings(someones_tree: Tree):
    found = json.loads(someones_tree.sandboxed("python", "-c", INSIDE).succeeded().text)
    bed = files.testbed("netns").as_written
    machine = {"server": {"net.core.somaxconn": 128}, "client": {}}
    for side in ("server", "client"):
        wanted = bed[side]["sysctl"] | machine[side]
        seen = {key: " ".join(found[side][key].split()) for key in wanted}
        known = {key: str(value) for key, value in wanted.items() if found[side][key]}
        assert known == {key: value for key, value in seen.items() if value}
        assert len(known) >= len(wanted) - 1, "a kernel before 6.5 lacks one of them"
    assert found["server"]["net.ipv4.no_such_setting"] == ""
    assert found["namespaces"] == 2
    assert found["opens"] == {"server": 1, "client": 1}
    assert found["set"] == {"net.core.somaxconn": "64"}
    assert found["restored"] == {"net.core.somaxconn": "128"}
    address = bed["client"]["address"].split("/")[0]
    assert found["client address"] == address and found["peer"] == address
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert min(hard, 65536) <= found["descriptors"] <= 65536


def test_machine_keeps_its_own_settings(tree: Tree):
    read = ["sysctl", "-n", "net.core.somaxconn", "net.ipv4.tcp_tw_reuse"]
    before = subprocess.run(read, capture_output=True, text=True, check=True).stdout
    tree.sandboxed("python", "-c", INSIDE).succeeded()
    assert subprocess.run(read, capture_output=True, text=True, check=True).stdout == before


def test_address_that_cannot_be_one(tree: Tree):
    script = (
        "from deathmatch import errors; from deathmatch.hosts import testbed\n"
        "from deathmatch.plan import files\n"
        "bed = files.testbed('netns')\n"
        "client = bed.client.model_copy(update={'address': '10.77.0.300/24'})\n"
        "bed = bed.model_copy(update={'client': client})\n"
        "errors.run_main(lambda: testbed.build(bed, {}))"
    )
    text = tree.sandboxed("python", "-c", script).failed().text
    assert (
        "testbed: `ip netns exec client ip address add 10.77.0.300/24 dev client0` failed" in text
    )


def test_cpus_in_words():
    assert testbed.cpus("last", [0]) == testbed.cpus("first", [0]) == [0]
    assert (testbed.cpus("first", [2, 5]), testbed.cpus("last", [2, 5])) == ([2], [5])
    eight = list(range(8))
    assert (testbed.cpus("first", eight), testbed.cpus("last", eight)) == (eight[:6], [6, 7])
    assert testbed.cpus("all", eight) == eight
    assert testbed.cpus("0-2,5", eight) == [0, 1, 2, 5]
    with pytest.raises(UserError, match=r"has no CPU 9\n  available: \[0, 1"):
        testbed.cpus("7-9", [*eight, 8])


def test_a_shared_cpu_is_told():
    note = "client and server share CPU 0: each takes from the other, and rates are of both"
    assert testbed.shared_note({"server": [0], "client": [0]}) == note
    assert "share CPUs 1, 2:" in testbed.shared_note({"server": [0, 1, 2], "client": [1, 2]})
    assert testbed.shared_note({"server": [0], "client": [1]}) == ""


@given(st.sets(st.integers(0, 300), min_size=1))
def test_cpus_are_shared_out(numbers):
    available = sorted(numbers)
    first, last = testbed.cpus("first", available), testbed.cpus("last", available)
    assert first and last
    if len(available) > 1:
        assert sorted(first + last) == available
    assert testbed.cpus(",".join(map(str, available)), available) == available


def test_affinity_is_what_this_process_may_use():
    assert Local().affinity() == sorted(os.sched_getaffinity(0))


def test_descriptors_are_raised_as_far_as_allowed():
    script = (
        "import resource; from deathmatch.hosts.host import Local\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 300))\n"
        "print(Local().raise_descriptors(200), Local().raise_descriptors(250))\n"
    )
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["200", "250"]
    # What is more than the hard limit takes CAP_SYS_RESOURCE.
    words = ["setpriv", "--bounding-set", "-sys_resource", "--inh-caps", "-sys_resource", *words]
    words[-1] = script.replace("200", "5000")
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["300", "250"]
