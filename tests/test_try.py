"""`deathmatch try`: any command as a server, without a folder."""

import shlex
import sys

import pytest
from conftest import BROKEN, Tree, copy_tree

from deathmatch.errors import UserError
from deathmatch.run import try_server

ALMOST = """\
import socket, sys
listener = socket.create_server(("0.0.0.0", int(sys.argv[1])), backlog=77)
answered = 0
while True:
    connection, _ = listener.accept()
    with connection:
        if b"GET " in connection.recv(4096):
            answered += 1
            body = b"Jello" if answered > 300 and answered % 20 == 0 else b"hello"
            head = b"HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\nConnection: close\\r\\n\\r\\n"
            connection.sendall(head + body)
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory, network) -> Tree:
    """A copy of the project, and a folder of somebody's own with a server that is wrong now and
    then."""
    tree = Tree(copy_tree(tmp_path_factory.mktemp("try") / "tree"), network)
    tree.briefly()
    own = tree.path.parent / "own"
    own.mkdir()
    (own / "almost.py").write_text(ALMOST)
    tree.environment["DEATHMATCH_FROM"] = str(own)
    return tree


def test_a_server_without_a_folder_is_measured_and_its_wrong_answers_come_first(tree: Tree):
    done = tree.deathmatch("try", f"{sys.executable} almost.py {{port}}")
    assert done.status == 3, done.text
    text = done.text
    assert "GET /: status 200, 5 bytes, 'hello'" in text
    assert "listen backlog: 77; its idle threads wait in no readiness mechanism" in text
    wrong, table = text.index("wrong answers under load"), text.index("CPU per reply")
    assert wrong < table < text.index("null server", table)
    assert "keep it, with a card: ./shell deathmatch new-server mine" in text
    assert not list((tree.path / "build").glob("scratch-*"))
    assert not (tree.path / "servers/try").exists()


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (f"python3 {BROKEN} exits {{host}} {{port}}", "ended before it listened (exit status 1)"),
        ("sh -c 'sleep 60 & exit 0' {port}", "its command must stay in the foreground"),
    ],
)
def test_a_command_that_is_no_server_is_named_in_a_line(tree: Tree, command: str, says: str):
    said = tree.deathmatch("try", command).failed().text
    assert says in said and "Traceback" not in said and len(said.splitlines()) <= 3


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("no-such-program {port}", "no-such-program: not found"),
        ("python3 almost.py", "the command has no {port}"),
        ("python3 'almost.py {port}", "No closing quotation"),
    ],
)
def test_words_that_start_no_server_are_named(command: str, says: str):
    with pytest.raises(UserError, match=says):
        try_server._server(command, websocket=False)


def test_the_command_of_a_server_becomes_a_folder(tree: Tree):
    command = f"{shlex.quote(sys.executable)} almost.py {{port}}"
    tree.deathmatch("new-server", "mine", "--command", command).succeeded()
    assert (tree.path / "servers/mine/almost.py").read_text() == ALMOST
    text = (tree.path / "servers/mine/server.toml").read_text()
    assert "{folder}/almost.py {port}" in text
    said = tree.deathmatch("check-server", "mine", "--experiment", "backlog").failed().text
    # Its answer is its owner's, not the one that the experiment expects.
    assert "FAILED as httperf asks: body b'hello', expected 'Hello, world'" in said
