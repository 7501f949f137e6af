"""The netns testbed: two namespaces, each with its own settings, as root and as a user."""

import json
import resource
import subprocess
import sys

import pytest
from conftest import ROOT, Tree

from deathmatch.errors import UserError
from deathmatch.hosts import hardware, testbed
from deathmatch.plan import files

# Runs inside a sandbox and prints what it finds.
INSIDE = """
import json, socket
from deathmatch.hosts import netns_testbed, network_settings
from deathmatch.plan import files
bed = files.testbed("netns")
hosts = netns_testbed.build(bed, {"net.core.somaxconn": 128, "net.ipv4.no_such_setting": 1})
server, (client,) = hosts.server, hosts.clients
found = {
    "server": server.sysctls([*bed.server.sysctl, "net.ipv4.no_such_setting"]),
    "client": client.sysctls(bed.client.sysctl),
    "names": [host.name for host in hosts.hosts],
    "namespaces": {kind: [host.run("readlink", f"/proc/self/ns/{kind}") for host in hosts.hosts]
                   for kind in ("net", "pid")},
    "descriptors": hosts.raise_descriptors(),
    "limits": [host.run("sh", "-c", "ulimit -n") for host in hosts.hosts],
}
sleeper = server.start(["sleep", "infinity"])
found["processes"] = [host.processes() for host in hosts.hosts]
found["sleeper"] = sleeper.pid
sleeper.kill()
listener = socket.create_server((hosts.address, 8080))
script = "import socket; print(socket.create_connection(('%s', 8080)).getsockname()[0])"
found["client address"] = client.run("python3", "-c", script % hosts.address).strip()
found["peer"] = listener.accept()[1][0]
found["opens"] = {side: host.counters()["snmp"][f"Tcp {name}"] for side, host, name in
                  (("server", server, "PassiveOpens"), ("client", client, "ActiveOpens"))}
found["listeners"] = [[one.address for one in host.listeners(8080)] for host in hosts.hosts]
before = server.sysctls(["net.core.somaxconn"])
server.set_sysctls({"net.core.somaxconn": 64, "net.ipv4.no_such_setting": 1})
found["set"] = server.sysctls(before)
server.set_sysctls(before)
found["restored"] = server.sysctls(before)
found["network"] = {host.name: network_settings.read(host) for host in hosts.hosts}
print(json.dumps(found))
hosts.end()
"""


def test_both_sides_have_their_own_settings(someones_tree: Tree):
    read = ["sysctl", "-n", "net.core.somaxconn", "net.ipv4.tcp_tw_reuse"]
    ours = subprocess.run(read, capture_output=True, text=True, check=True).stdout
    found = json.loads(someones_tree.sandboxed("python", "-c", INSIDE).succeeded().text)
    assert subprocess.run(read, capture_output=True, text=True, check=True).stdout == ours
    bed = files.testbed("netns").as_written
    machine = {"server": {"net.core.somaxconn": 128}, "client": {}}
    for side in ("server", "client"):
        wanted = bed[side]["sysctl"] | machine[side]
        seen = {key: " ".join(found[side][key].split()) for key in wanted}
        known = {key: str(value) for key, value in wanted.items() if found[side][key]}
        assert known == {key: value for key, value in seen.items() if value}
        assert len(known) >= len(wanted) - 1, "a kernel before 6.5 lacks one of them"
    assert found["server"]["net.ipv4.no_such_setting"] == ""
    assert found["names"] == ["server", "client"]
    assert [len({*each}) for each in found["namespaces"].values()] == [2, 2]
    assert found["processes"] == [[found["sleeper"]], []], "each host sees what runs on it"
    assert found["network"].keys() == {"server", "client"}
    for settings in found["network"].values():
        assert settings["net.ipv4.tcp_congestion_control"] in ("cubic", "reno")
        assert settings["net.core.somaxconn"] and not any(key.endswith("_key") for key in settings)
    assert found["network"]["server"]["net.core.somaxconn"] == "128"
    assert found["opens"] == {"server": 1, "client": 1}
    assert found["listeners"] == [["10.77.0.1:8080"], []]
    assert found["set"] == {"net.core.somaxconn": "64"}
    assert found["restored"] == {"net.core.somaxconn": "128"}
    address = bed["client"]["address"].split("/")[0]
    assert found["client address"] == address and found["peer"] == address
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert min(hard, 65536) <= found["descriptors"] <= 65536
    assert found["limits"] == [f"{found['descriptors']}\n"] * 2


TWO_CLIENTS = {
    "client": {"cpus": "last", "sysctl": {"net.ipv4.tcp_tw_reuse": 1}},
    "clients": [
        {"address": "10.77.0.2/24"},
        {
            "name": "far", "address": "10.77.0.3/24", "sources": ["10.79.0.0/16", "10.80.0.9"],
            "sysctl": {"net.ipv4.tcp_syn_retries": 3},
        },
    ],
}  # fmt: skip

# Runs inside a sandbox and prints what it finds.
SEVERAL = """
import json, socket, sys, time
from deathmatch.hosts import netns_testbed
from deathmatch.measure.sampler import Sampler
from deathmatch.plan import files, testbed
bed = files.testbed("netns").as_written | json.loads(sys.argv[1])
hosts = netns_testbed.build(testbed.Testbed.model_validate(bed), {})
taking = Sampler(1, time.monotonic_ns(), 8080, hosts.server, hosts.clients, lambda client: [], [0])
listener = socket.create_server(("", 8080))
taking.take()
script = (
    "import socket, sys; s = socket.create_connection(('%s', 8080), source_address=(sys.argv[1],"
    " 0)); s.recv(1)" % hosts.address
)
found = {"peers": [], "to each other": []}
for client, source in zip((0, 1, 1, 1), ("10.77.0.2", "10.77.0.3", "10.79.200.7", "10.80.0.9")):
    process = hosts.clients[client].start(["python3", "-c", script, source])
    connection, (peer, _) = listener.accept()
    connection.sendall(b"x")
    connection.close()
    found["peers"].append([peer, process.wait()])
taking.take()
before, after = taking.rows
found["opens"] = after["client_active_opens"] - before["client_active_opens"]
found["opened"] = [host.counters()["snmp"]["Tcp ActiveOpens"] for host in hosts.clients]
found["names"] = [host.name for host in hosts.hosts]
found["cpus"] = list(hosts.cpus())
found["link"] = hosts.server.run("ip", "-o", "link", "show", "dev", hosts.link, "type", "bridge")
keys = ["net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_syn_retries"]
found["sysctls"] = [client.sysctls(keys) for client in hosts.clients]
print(json.dumps(found))
hosts.end()
"""


def test_several_clients_reach_the_server_each_from_its_addresses(tree: Tree):
    words = ["python", "-c", SEVERAL, json.dumps(TWO_CLIENTS)]
    found = json.loads(tree.sandboxed(*words).succeeded().text)
    addresses = ["10.77.0.2", "10.77.0.3", "10.79.200.7", "10.80.0.9"]
    assert found["peers"] == [[address, 0] for address in addresses]
    assert found["names"] == found["cpus"] == ["server", "client1", "far"]
    assert found["link"].startswith("2: server0:") or ": server0:" in found["link"]
    assert found["opens"] == 4 and found["opened"] == [1, 3], "a sample adds up the clients'"
    own = [values["net.ipv4.tcp_syn_retries"] for values in found["sysctls"]]
    assert [values["net.ipv4.tcp_tw_reuse"] for values in found["sysctls"]] == ["1", "1"]
    assert own[1] == "3" != own[0]


CLIENT = '[client]\naddress = "10.77.0.2/24"\ncpus = "last"\n'
COMMON = '[client]\ncpus = "last"\n'


def several(*own: str) -> str:
    return COMMON + "".join(f"\n[[clients]]\n{each}\n" for each in own)


@pytest.mark.parametrize(
    ("kind", "clients", "problem"),
    [
        ("netns", COMMON, "client needs `address`"),
        ("netns", '[[clients]]\naddress = "10.77.0.2/24"\n', "client needs `cpus`"),
        ("netns", CLIENT.replace("0.2/", "0.1/"), "two hosts have the same `address`"),
        ("netns", several('name = "server"\naddress = "10.77.0.3/24"'),
         "two hosts have the same `name`"),
        ("ssh", CLIENT, "two hosts have the same `ssh`"),
        ("netns", f'{CLIENT}ssh = "there"\n', "`ssh` is only for kind ssh"),
        ("ssh", f'{CLIENT}ssh = "there"\n[server]\njitter = "delay 1ms"\n', "not for kind ssh"),
        ("ssh", f'{CLIENT}ssh = "-oProxyCommand=sh"\n', "key client.ssh: "),
        ("netns", f'{CLIENT}sources = ["a.b.c.d"]\n', "key client.sources.0: "),
    ],
)  # fmt: skip
def test_testbed_that_contradicts_itself(tmp_path, kind, clients, problem):
    clients, _, server = clients.partition("[server]\n")
    folder = tmp_path / "config" / "testbeds"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text(
        f'title = "mine"\nkind = "{kind}"\ndescriptors = 1024\nsample_interval_s = 1\n\n'
        f'[server]\naddress = "10.77.0.1/24"\ncpus = "first"\nsysctl = {{}}\n{server}\n{clients}'
    )
    with pytest.raises(UserError) as error:
        files.testbed("mine", tmp_path)
    told = str(error.value)
    assert told.startswith("config/testbeds/mine.toml") and problem in told, told


def test_cpus_in_words():
    assert testbed.cpus("last", [0]) == testbed.cpus("first", [0]) == [0]
    assert (testbed.cpus("first", [2, 5]), testbed.cpus("last", [2, 5])) == ([2], [5])
    eight = list(range(8))
    assert (testbed.cpus("first", eight), testbed.cpus("last", eight)) == (eight[:6], [6, 7])
    assert testbed.cpus("all", eight) == eight
    # One CPU is not several.
    assert (testbed.cpus("most", [2, 5]), testbed.cpus("most", eight)) == ([2, 5], eight[:6])
    assert testbed.cpus("0-2,5", eight) == [0, 1, 2, 5]
    with pytest.raises(UserError, match=r"has no CPU 9\n  available: \[0, 1"):
        testbed.cpus("7-9", [*eight, 8])


def test_a_shared_cpu_is_reported():
    note = "client and server share CPU 0: each takes from the other, and rates are of both"
    assert testbed.shared_note({"server": [0], "client": [0]}) == note
    assert "share CPUs 1, 2:" in testbed.shared_note({"server": [0, 1, 2], "client": [1, 2]})
    assert testbed.shared_note({"server": [0], "client": [1]}) == ""


def test_a_processor_is_named_with_its_family_and_model():
    """Two generations may have one name: a hypervisor hides it."""
    shown = subprocess.run(["lscpu", "--json"], capture_output=True, text=True, check=True)
    known = {each["field"]: each["data"] for each in json.loads(shown.stdout)["lscpu"]}
    found = hardware.describe()["cpu"]
    assert found.startswith(known.get("Model name:", ""))
    if "CPU family:" in known:
        assert found.endswith(f", family {known['CPU family:']} model {known['Model:']}")
    arm = "processor\t: 0\nBogoMIPS\t: 243.75\nCPU part\t: 0xd0c\n"
    assert "family" not in hardware.processor(arm)


def test_descriptors_are_raised_as_far_as_allowed():
    """Raising them above the hard limit takes CAP_SYS_RESOURCE."""
    script = (
        "import resource; from deathmatch.agent.kernel import raise_descriptors\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 300))\n"
        "print(raise_descriptors(200), raise_descriptors(5000), raise_descriptors(250))\n"
    )
    words = ["setpriv", "--bounding-set", "-sys_resource", "--inh-caps", "-sys_resource"]
    words += [sys.executable, "-c", script]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["200", "300", "250"]
