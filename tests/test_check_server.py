"""`deathmatch check-server`: each experiment and configuration of a server, checked in seconds."""

from conftest import Tree

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
"""


def test_each_configuration_is_checked_and_a_failure_is_named(tree: Tree):
    tree.server("one", "{mode}")
    toml = tree.path / "servers/one/server.toml"
    toml.write_text(toml.read_text() + CONFIGURATIONS)
    said = tree.deathmatch("check-server", "one").failed().text
    good, _, others = said.partition("backlog configuration=bad")
    bad, _, warming = others.partition("backlog configuration=warming")
    assert "backlog configuration=good" in good and "FAILED" not in good
    assert "  ok   as httperf asks" in good
    assert "FAILED" in bad and "body b'Adieu, world', expected 'Hello, world'" in bad
    assert "status 503, expected 200; open the port only once it can answer" in warming
    assert warming.endswith("one: a check failed\n")
    assert not (tree.path / "data/tour").exists()


def test_a_server_that_does_not_start_gives_its_reason(tree: Tree):
    tree.server("one", "exits")
    said = tree.deathmatch("check-server", "one").failed().text
    assert "  FAILED ended before it listened (exit status 1)" in said and "no such luck" in said
    said = tree.deathmatch("check-server", "one", "--experiment", "static").failed().text
    assert "servers/one does not serve 'static'\n  it serves backlog" in said
