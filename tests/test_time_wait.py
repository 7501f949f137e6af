"""The testbed `time-wait`: a client whose closed connections keep their ports runs out of them."""

import json
from pathlib import Path

import pytest
from conftest import Tree

from deathmatch.data import tidy
from deathmatch.load import httperf

PORTS = 1000
# 2,000 connections of ten requests each, in a second.
RATE_RPS, DURATION_S = 20000, 1.0


@pytest.fixture
def static(tree: Tree) -> Tree:
    """A copy with a testbed of few ports, and a dataset of one trial on it and one on the usual."""
    tree.write(
        "config/testbeds/few.toml",
        'extends = "time-wait"\ntitle = "few ports"\n\n[client.sysctl]\n'
        f'"net.ipv4.ip_local_port_range" = "20000 {20000 + PORTS - 1}"\n',
    )
    tree.write(
        "config/datasets/ports.toml",
        'title = "a test"\ntrials = 1\nseed = 1\n\n[experiments.static]\n'
        f"rates_rps = [{RATE_RPS}]\nduration_s = {DURATION_S}\n\n"
        '[[experiments.static.grids]]\nservers = ["null"]\n\n'
        '[[experiments.static.grids]]\nservers = ["null"]\nown_testbed = ["few"]\n',
    )
    tree.deathmatch("build", "null").succeeded()
    return tree


@pytest.mark.parametrize(("own", "runs_out"), [("", False), (",own_testbed=few", True)])
def test_only_a_client_whose_ports_rest_runs_out_of_them(static: Tree, own, runs_out):
    variant = f"backlog=1024,schedulers=one{own}"
    folder = Path("data", "ports", "static", "null", variant, "1")
    static.deathmatch("trial", folder).succeeded()
    record = static.path / folder / "trial.json"
    assert json.loads(record.read_text())["outcome"] == "measured"
    (point,) = tidy.tidy(record)["points"]
    lacking = sum(point[error] for error in httperf.OWN_ERRORS)
    # Some of the ports are taken by the checks and the warm-up.
    assert (lacking >= RATE_RPS / 10 - PORTS) == runs_out and (lacking == 0) != runs_out
