"""A tool that nothing knows is named when the server is built."""

import pytest
from conftest import Tree

from deathmatch.builds import toolchain, unknown_tools
from deathmatch.plan import files


def test_no_tool_of_the_project_is_unknown():
    """Without any program installed: but for what only another tool runs."""
    messages = [unknown_tools.message(server, "") for server in files.servers()]
    # cargo and pip run the C compiler; no file of a server names it.
    assert {message.split(",")[0] for message in messages if message} == {"cc"}


@pytest.mark.skipif(toolchain.name() == "nix", reason="there each tool must be Nix's")
def test_a_misspelt_tool_fails_the_build(tree: Tree):
    tree.server("mine", "ok")
    text = (tree.path / "servers/mine/server.toml").read_text()
    tree.write("servers/mine/server.toml", f'{text}packages.tools = ["python3", "pyhton"]\n')
    said = tree.deathmatch("build", "mine").text
    assert "pyhton, which packages.tools of servers/mine/server.toml names, is missing" in said
    assert "python3, which" not in said
    tree.replace("servers/mine/server.toml", ', "pyhton"', "")
    assert "is missing" not in tree.deathmatch("build", "mine").succeeded().text
