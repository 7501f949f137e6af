"""The audit: it reads other machines, and its checks find planted and real bad settings."""

import json
import subprocess
import sys

import pytest
from conftest import ROOT, Tree

from deathmatch.checks import findings
from deathmatch.checks.findings import PASSED, REJECTED
from deathmatch.errors import UserError
from deathmatch.hosts import audit, host_state
from deathmatch.hosts.audit import Audit, Demand
from deathmatch.hosts.host_state import State

# Files of a machine of 192 CPUs with a busy firewall.
SHOWN = """65536
/proc/meminfo:MemTotal:       394874876 kB
/proc/meminfo:MemAvailable:   390000000 kB
/sys/devices/system/cpu/online:0-191
/sys/devices/system/cpu/smt/active:1
/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor:schedutil
/sys/devices/system/cpu/cpu96/cpufreq/scaling_governor:performance
/sys/devices/system/cpu/cpufreq/boost:1
/sys/devices/system/clocksource/clocksource0/current_clocksource:hpet
/proc/sys/net/core/somaxconn:128
/proc/sys/net/ipv4/ip_local_port_range:32768\t60999
/proc/sys/net/ipv4/ip_local_reserved_ports:1000-2000,40000-40009
/proc/sys/net/ipv4/tcp_tw_reuse:1
/proc/sys/net/ipv4/tcp_timestamps:0
/proc/sys/net/ipv4/tcp_congestion_control:cubic
/proc/sys/net/netfilter/nf_conntrack_count:65530
/proc/sys/net/netfilter/nf_conntrack_max:65536
/sys/class/net/ens1/speed:10000
"""
LINKS = [{"ifname": "lo", "flags": ["UP"], "addr_info": [{"local": "127.0.0.1"}]},
         {"ifname": "ens1", "flags": ["UP", "LOWER_UP"], "mtu": 1500,
          "addr_info": [{"local": "192.0.2.9"}]}]  # fmt: skip


def test_other_machines_files_are_understood():
    state = host_state.parsed(SHOWN + json.dumps(LINKS), "192.0.2.9")
    assert state["processor"] == {
        "online": list(range(192)), "smt_active": True, "governors": ["performance", "schedutil"],
        "turbo": True,
    }  # fmt: skip
    assert state["memory"] == {"available_bytes": 390_000_000 * 1024}
    assert state["clock"] == {"source": "hpet"}
    assert state["interface"] == {
        "name": "ens1", "up": True, "mtu_bytes": 1500, "speed_bit_per_s": 10**10,
    }  # fmt: skip
    limits = state["limits"]
    assert limits["ports_reserved"] == 10, "1000 to 2000 are not in the range"
    assert limits["port_reuse"] is False, "there is none without time stamps"
    assert (limits["descriptors"], limits["somaxconn"]) == (65536, 128)
    assert (limits["connections_tracked"], limits["connections_trackable"]) == (65530, 65536)
    assert limits["time_wait_buckets"] is None and limits["congestion_control"] == "cubic"


def test_an_unknown_state_refuses_nothing_but_an_absent_interface():
    empty = host_state.parsed("unlimited\n[]", "192.0.2.9")
    assert empty["processor"]["governors"] is None and empty["limits"]["descriptors"] is None
    assert {(one.check, one.severity) for one in audit.findings(made(empty, empty))} == {
        ("link-down", "refuse")
    }


def host(part: str = "", **changed: object) -> State:
    """Return the state of a sound host, with a part of it changed."""
    state = {
        "processor": dict(
            online=list(range(8)), smt_active=True, governors=["performance"], turbo=False
        ),
        "memory": dict(available_bytes=10**11),
        "clock": dict(source="tsc"),
        "interface": dict(name="ens1", up=True, mtu_bytes=1500, speed_bit_per_s=10**10),
        "limits": dict(
            descriptors=65536, port_first=1024, port_last=65535, ports_reserved=0,
            port_reuse=True, time_wait_buckets=262144, somaxconn=4096, abort_on_overflow=False,
            congestion_control="cubic", connections_tracked=0, connections_trackable=65536,
        ),
    }  # fmt: skip
    return state | ({part: state[part] | changed} if part else {})


NEEDED = Demand(
    connections_held=10_000, connections_worst=20_000, connections_per_s=10_000, duration_s=2,
    backlog=4096,
)  # fmt: skip


def made(
    server: State | None = None, client: State | None = None, separate: bool = True,
    cpus: tuple[list[int], list[int]] = ([0, 1], [0, 1]), load: dict | None = None,
) -> Audit:  # fmt: skip
    return Audit(
        testbed="lab", separate=separate,
        hosts={"server": server or host(), "client": client or host()},
        cpus={"server": cpus[0], "client": cpus[1]}, demand=NEEDED,
        load={"client": {"busy_share": 0.01, "steal_share": 0.0} | (load or {})},
    )  # fmt: skip


# By check and severity: audits in which it finds something, each sound but for one bad setting.
PLANTED = {
    ("other-load", "refuse"): [made(load={"busy_share": 0.55})],
    ("other-load", "warn"): [made(load={"busy_share": 0.15})],
    ("stolen-time", "warn"): [made(load={"steal_share": 0.02})],
    ("shared-cpus", "warn"): [made(separate=False, cpus=([0, 1], [1, 2]))],
    ("governor", "warn"): [made(host("processor", governors=["performance", "powersave"]))],
    ("descriptors", "refuse"): [made(host("limits", descriptors=10_000))],
    ("descriptors", "warn"): [made(client=host("limits", descriptors=20_000))],
    ("ports", "refuse"): [
        made(client=host("limits", port_first=50_000)),
        # 20,000 opened in 2 s rest, 10,000 are held: 28,232 are too few without reuse.
        made(client=host("limits", port_first=32_768, port_last=60_999, port_reuse=False)),
        made(client=host("limits", ports_reserved=50_000)),
    ],
    ("somaxconn", "warn"): [made(host("limits", somaxconn=4095))],
    ("conntrack", "refuse"): [
        made(host("limits", connections_tracked=5, connections_trackable=30_004))
    ],
    ("conntrack", "warn"): [made(client=host("limits", connections_tracked=5))],
    ("memory", "refuse"): [made(host("memory", available_bytes=73_999_999))],
    ("clock", "warn"): [made(host("clock", source="hpet"))],
    ("link-down", "refuse"): [
        made(host("interface", up=False)),
        made(client=host("interface", name=None, up=False, mtu_bytes=None)),
    ],
    ("network-settings", "note"): [made(host("limits", time_wait_buckets=19_999))],
    ("network-settings", "warn"): [
        made(host("limits", abort_on_overflow=True)),
        made(client=host("limits", congestion_control="reno")),
    ],
}  # fmt: skip


def test_sound_hosts_are_fit():
    assert audit.findings(made()) == []
    assert audit.findings(made(separate=False, cpus=([0, 4], [1, 5]))) == []
    ports = made(host("limits", port_first=50_000))
    assert audit.findings(ports) == [], "a server needs none"


def test_each_bad_setting_is_found_by_its_check_alone():
    for (check, severity), planted in PLANTED.items():
        for each in planted:
            found = audit.findings(each)
            assert {(one.check, one.severity) for one in found} == {(check, severity)}, found
            assert all(one.where and one.text and one.remedy for one in found)
    assert {check for check, _ in PLANTED} == {*audit.NAMES}


def test_an_accepted_check_does_not_refuse():
    busy = made(load={"busy_share": 0.9, "steal_share": 0.5})
    found = audit.findings(busy)
    assert [one.verdict for one in found] == ["refuse", "warn"], "the worst first"
    assert findings.status(found) == REJECTED
    assert findings.status(audit.findings(busy, ["other-load"])) == PASSED
    with pytest.raises(UserError, match="did you mean 'other-load'"):
        audit.check_accepts(["other-laod"], "somewhere")


def test_demand_is_what_the_load_asks():
    idle = {"factors": {"idle_connections": 8000}, "duration_s": 3}
    load = {"requests_per_connection": 10, "timeout_s": 5}
    asked = audit.trial_demand({"client": "httperf", "load": load, "rates_rps": [500, 4000],
                       "factors": {}, "duration_s": 3})  # fmt: skip
    assert asked == Demand(connections_worst=1200, connections_per_s=400, duration_s=3)
    asked = audit.trial_demand(
        {"client": "roundtrip", "load": {"connections": 8}, "rates_rps": [0], **idle}
    )
    assert (asked.connections_held, asked.connections_per_s) == (8008, 0)
    load = {"interval_s": 2, "timeout_s": 30}
    asked = audit.trial_demand({"client": "wsload", "load": load, "rates_rps": [10_000],
                       "factors": {}, "duration_s": 60})  # fmt: skip
    assert asked.connections_held == 20_000
    assert audit.trial_demand({"measures": "storage", "factors": {}}) == Demand()


# Runs inside a sandbox: plants one bad setting after the other, each undone, and prints what is
# found with it. What the kernel cannot plant is left out.
INSIDE = """
import json, resource, sys
from deathmatch.hosts import audit, netns_testbed
from deathmatch.plan import files
hosts = netns_testbed.build(files.testbed("netns"), {})
server, (client,) = hosts.server, hosts.clients
cpus = {"server": server.affinity()[:1], "client": server.affinity()[-1:]}
asked = audit.Demand(connections_held=50, connections_worst=50, connections_per_s=100,
                     duration_s=10, backlog=4096)
seen = {}

def look(name, window_s=0):
    found = audit.findings(audit.read(hosts, cpus, asked, window_s))
    seen[name] = sorted({f"{one.check} {one.where}" for one in found})

def planted(name, host, values):
    before = host.sysctls(values)
    host.set_sysctls(values)
    look(name)
    host.set_sysctls(before)

look("nothing")
states = audit.read(hosts, cpus, asked).hosts
seen["interface"] = [states[name]["interface"]["name"] for name in ("server", "client")]
planted("ports", client, {"net.ipv4.ip_local_port_range": "40000 40100"})
planted("buckets", server, {"net.ipv4.tcp_max_tw_buckets": 10})
planted("overflow", server, {"net.ipv4.tcp_abort_on_overflow": 1})
planted("queue", server, {"net.core.somaxconn": 1024})
client.run("ip", "link", "set", "client0", "down")
look("down")
client.run("ip", "link", "set", "client0", "up")
soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
for host in hosts.hosts:
    host.raise_descriptors(100)
look("descriptors")
for host in hosts.hosts:
    host.raise_descriptors(soft)
loops = [server.start([sys.executable, "-c", "while True: pass"], cpus=[cpu])
         for cpu in sorted({*cpus["server"], *cpus["client"]})]
look("loops", 0.5)
for loop in loops:
    loop.kill()
print(json.dumps(seen))
hosts.end()
"""
# How a busy machine, or one that is not like ours, looks without anything planted.
INNOCENT = {
    f"{check} this machine" for check in ("shared-cpus", "governor", "clock", "stolen-time")
}


def test_planted_settings_are_found_on_real_hosts(shared_tree: Tree):
    done = shared_tree.sandboxed("python", "-c", INSIDE).succeeded()
    seen = json.loads(done.text.splitlines()[-1])
    assert seen.pop("interface") == ["server0", "client0"]
    assert {name: {*found} - INNOCENT for name, found in seen.items()} == {
        "nothing": set(),
        "ports": {"ports client"},
        "buckets": {"network-settings server"},
        "overflow": {"network-settings server"},
        "queue": {"somaxconn server"},
        "down": {"link-down client", "link-down server"},
        "descriptors": {"descriptors client", "descriptors server"},
        "loops": {"other-load this machine"},
    }


def test_the_exit_status_separates_findings_from_failures(shared_tree: Tree):
    shared_tree.dataset("gentle", ["null"], [100])
    shared_tree.dataset("fierce", ["null"], [900_000])
    words = ("netns", "--accept", "other-load")
    told = json.loads(
        shared_tree.deathmatch("audit", *words, "--dataset", "gentle", "--json").succeeded().text
    )
    assert told["audit"]["hosts"].keys() == {"server", "client"}
    assert told["audit"]["demand"]["connections_per_s"] == 100
    done = shared_tree.deathmatch("audit", *words, "--dataset", "fierce")
    assert done.status == 3, done.text
    assert "refused: ports" in done.text and "client: 64,512 source ports" in done.text
    assert done.text.splitlines()[-1].startswith("not fit to measure (1 refused")


def test_reader_may_stop_early():
    script = "from deathmatch.checks import findings; findings.say('word ' * 1_000_000)"
    talker = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert talker.stdout.read(4) == "word"
    talker.stdout.close()
    with talker.stderr as errors:
        assert errors.read() == ""
    assert talker.wait() == 0


def test_trial_is_refused_unless_its_testbed_accepts_it(shared_tree: Tree):
    narrow = (
        'extends = "netns"\n{}\n[client.sysctl]\n"net.ipv4.ip_local_port_range" = "40000 40100"\n'
    )
    file = shared_tree.write("config/testbeds/narrow.toml", narrow.format(""))
    shared_tree.server("mine", "http")
    shared_tree.dataset("few", ["mine"], [400])
    path = "data/few/backlog/mine/somaxconn=4096/1"
    folder, words = shared_tree.path / path, ("trial", "--testbed", "narrow", path)
    done = shared_tree.deathmatch(*words).failed()
    assert "ports (client): 101 source ports (40000 to 40100)" in done.text
    assert 'accepts = ["ports"] in config/testbeds/narrow.toml' in done.text
    assert not folder.exists()
    file.write_text(narrow.format('accepts = ["ports"]'))
    shared_tree.deathmatch(*words).succeeded()
    hosts = json.loads((folder / "trial.json").read_text())["hosts"]
    assert hosts["client"]["limits"]["port_last"] == 40100
    assert hosts["server"]["limits"]["port_last"] != 40100
    for name, seen in hosts.items():
        assert seen["interface"]["name"] == f"{name}0" and seen["clock"]["source"]
