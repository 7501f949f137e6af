"""`deathmatch check-server`: each experiment and configuration of a server, checked in seconds."""

import os
from argparse import Namespace

import pytest
from conftest import Tree

from deathmatch.errors import UserError
from deathmatch.run import check_server

CONFIGURATIONS = """
[configurations.good]
mode = "ok"
about = "It answers."

[configurations.bad]
mode = "wrong"
about = "It answers wrongly."

[configurations.warming]
mode = "warming"
about = "It answers 503, as if it had just been started."

[configurations.greedy]
mode = "greedy"
about = "It takes every CPU."

[configurations.drips]
mode = "drips"
about = "Its header grows by a byte each half second, and never ends."
"""


def test_each_configuration_is_checked_and_a_failure_is_named(shared_tree: Tree):
    tree = shared_tree
    tree.server("one", "{mode}")
    toml = tree.path / "servers/one/server.toml"
    toml.write_text(toml.read_text() + CONFIGURATIONS)
    said = tree.deathmatch("check-server", "one").failed().text
    good, _, others = said.partition("backlog configuration=bad")
    bad, _, others = others.partition("backlog configuration=warming")
    warming, _, others = others.partition("backlog configuration=greedy")
    greedy, _, drips = others.partition("backlog configuration=drips")
    assert "backlog configuration=good" in good and "FAILED" not in good
    assert "  ok   as httperf asks" in good
    assert "FAILED" in bad and "body b'Adieu, world', expected 'Hello, world'" in bad
    assert "status 503, expected 200; open the port only once it can answer" in warming
    if os.cpu_count() > 1:
        assert "FAILED keeps to its CPUs and settings: it may run on CPU" in greedy
    assert "FAILED as httperf asks: TimeoutError: no whole answer within 5 s" in drips
    assert drips.endswith("one: a check failed\n")
    assert not (tree.path / "data/tour").exists()


def test_an_experiment_that_the_server_does_not_serve_is_refused():
    with pytest.raises(
        UserError, match="does not serve 'static'\n  choose one that it serves: c10k"
    ):
        check_server.main(Namespace(server="ws-null", experiment="static"))


def test_a_build_without_an_end_is_ended_and_a_child_is_not_waited_for(shared_tree: Tree):
    tree = shared_tree
    tree.replace(
        "deathmatch/builds/steps.py", "BUILD_S, VERSION_S = 3600, 60", "BUILD_S, VERSION_S = 3, 3"
    )
    child = "sleep 100000 &"
    tree.server("leaves", "ok", build=child, version=f"{child} echo 1.2")
    assert "its version is: 1.2" in tree.deathmatch("build", "leaves").succeeded().text
    tree.server("builds", "ok", build="echo working; sleep 100000")
    said = tree.deathmatch("build", "builds").failed().text
    assert "working" in said and "it was killed, as it took longer than 3 s: echo working" in said
    tree.server("tells", "ok", version="sleep 100000")
    said = tree.deathmatch("build", "tells").failed().text
    assert "the version command failed: it was killed, as it took longer than 3 s" in said
