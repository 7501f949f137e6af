"""A study on three machines that ssh reaches: one server, two clients that share the load."""

import json
import subprocess

import conftest
import lab
import polars as pl
import psutil
import pytest
from conftest import AS_ROOT, Tree, ended, matching, wait_for
from lab import AHEAD_S, Lab
from sshd import LINK

from deathmatch.analysis import provenance

STUDY = {"dataset": "small", "testbed": "lab"}
TRIAL = "data/{}/backlog/null/backlog=128,schedulers=one,somaxconn=4096/1"
SETTING = "/proc/sys/net/ipv4/tcp_max_syn_backlog"
RATE_RPS, DURATION_S = 200, 0.5


# The walk of the default suite is that of the user who runs it; the other one is of the kind ssh.
WHO = ["root", pytest.param("user", marks=pytest.mark.ssh)] if AS_ROOT else ["user"]


@pytest.fixture(scope="module", params=WHO)
def machines(request, tmp_path_factory):
    tree = Tree(conftest.copy_tree(tmp_path_factory.mktemp("lab")))
    tree.dataset("small", ["null"], [RATE_RPS], DURATION_S)
    tree.dataset("long", ["null"], [RATE_RPS], 60)
    yield from lab.make(tree, request.param)


@pytest.fixture
def first(machines: Lab) -> Lab:
    """The machines of the first user alone: who logs in makes no difference to these tests."""
    if AS_ROOT and machines.user == "user":
        pytest.skip("who logs in makes no difference")
    return machines


def test_a_study_from_the_first_connection_to_the_tables(machines: Lab):
    before = machines.on("server", "cat", SETTING)
    machines.tree.snakemake("--until", "tidy", **STUDY).succeeded()
    (log,) = (machines.tree.path / "build/logs/trial").rglob("*.log")
    for host in lab.HOSTS:
        assert (
            f"host {host}: first connection of this version, copying the agent to"
            in log.read_text()
        )
        assert f"host {host}: copying " in log.read_text()
    assert machines.on("server", "cat", SETTING) == before
    assert [one for host in lab.HOSTS for one in machines.running(host)] == []
    folder = machines.tree.path / TRIAL.format("small")
    assert (folder / "server.log").read_text().startswith("$ ssh -T server ")
    record = json.loads((folder / "trial.json").read_text())
    assert record["outcome"] == "measured" and record["separate"]
    assert set(record["hosts"]) == set(lab.HOSTS)
    assert all(one["machine"]["cpus"] for one in record["hosts"].values())
    (point,) = record["points"]
    assert set(point["clocks"]) == set(lab.HOSTS)
    for client in point["clients"]:
        behind_us = -AHEAD_S[client["client"]] * 10**6
        here_us = client["clock_offset_us"] + behind_us
        # The controller's clock is not ahead.
        assert abs(here_us) <= client["clock_bound_us"] < 10**6
        assert (folder / client["log"]).is_file()
    assert [client["client"] for client in point["clients"]] == ["client1", "client2"]
    points = pl.read_parquet(machines.tree.path / "data/small/backlog/points.parquet")
    assert points["connections"].to_list() == [round(RATE_RPS * DURATION_S)]
    assert points["replies"].to_list() == [round(RATE_RPS * DURATION_S)]
    trials = pl.read_parquet(machines.tree.path / "data/small/backlog/trials.parquet")
    told = provenance.place(trials)
    assert "Each host is a machine of its own (client1: " in told
    bound_us, late_us = trials["clock_bound_us"][0], trials["late_us"][0]
    assert f"how far two clocks are apart was known within {bound_us} µs at each" in told
    assert f"began at an agreed instant, {late_us} µs late at most." in told
    # An instant of another clock has passed long ago.
    assert late_us < AHEAD_S["client1"] * 10**6


def offering(machines: Lab) -> list[psutil.Process]:
    """Return the load generators that run on the first client."""
    return matching(machines.running("client1"), "httperf")


def ssh_of(trial: subprocess.Popen, host: str) -> psutil.Process:
    return matching(conftest.descendants(trial.pid), "ssh", host)[0]


DEATHS = ["ssh killed", "server's agent killed", "link down", "controller killed"]


@pytest.mark.ssh
@pytest.mark.parametrize("death", DEATHS)
def test_a_death_in_the_middle(machines: Lab, death):
    """Nothing is left anywhere, what was set is as before, and the next run measures."""
    if AS_ROOT and machines.user == "user" and death != DEATHS[0]:
        pytest.skip("who logs in makes no difference to the others")
    if not (machines.tree.path / TRIAL.format("small")).exists():
        pytest.skip("the study above has failed")
    before = machines.on("server", "cat", SETTING)
    trial = machines.tree.start(
        "python", "-m", "deathmatch", "trial", TRIAL.format("long"), "--testbed", "lab"
    )
    wait_for(lambda: offering(machines) or trial.poll() is not None, "a client offers its load")
    running = [one for host in lab.HOSTS for one in machines.running(host)]
    assert trial.poll() is None and running, trial.stdout.read()
    if death == "ssh killed":
        ssh_of(trial, "client1").kill()
    elif death == "server's agent killed":
        matching(machines.running("server"), "--session")[0].kill()
    elif death == "link down":
        machines.link("down", "client2")
    else:
        trial.kill()
    text, _ = trial.communicate()
    if death != "controller killed":
        host = {"link down": "client2", "server's agent killed": "server"}.get(death, "client1")
        assert trial.returncode == 1 and f"deathmatch: host {host}: " in text, text
        assert "Traceback" not in text
        assert "what ran there has ended; see whether the host is up, and run again" in text
    wait_for(lambda: ended(running), "nothing runs on any host")
    if death == "link down":
        machines.link("up", "client2")
    wait_for(lambda: machines.on("server", "cat", SETTING) == before, "the setting is restored")
    assert not (machines.tree.path / TRIAL.format("long") / "trial.json").exists()


@pytest.mark.ssh
def test_after_a_full_disk_of_a_client_the_trial_is_resumed(first: Lab):
    first.fill("client2", True)
    done = first.trial(TRIAL.format("small")).failed()
    assert "No space left on device" in done.text and "Traceback" not in done.text
    first.fill("client2", False)
    first.trial(TRIAL.format("small")).succeeded()


@pytest.mark.ssh
def test_an_address_that_a_host_lacks(first: Lab):
    first.tree.write(
        "config/testbeds/moved.toml", 'extends = "lab"\n[server]\naddress = "10.78.0.99/24"\n'
    )
    done = first.tree.deathmatch("audit", "moved").failed()
    assert (
        "config/testbeds/moved.toml, address of server: that host has no address 10.78.0.99\n"
        "  write one of these: "
    ) in done.text
    assert f"10.78.0.2 on {LINK}" in done.text


@pytest.mark.ssh
def test_a_host_that_is_gone(first: Lab):
    first.processes["client2"].kill()
    done = first.trial(TRIAL.format("small")).failed()
    assert "host client2: it cannot be reached: ssh: connect to host 10.78.0.4" in done.text
    for host in ("server", "client1"):
        wait_for(lambda host=host: first.running(host) == [], "nothing runs there")
