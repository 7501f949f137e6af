"""Values that vary: real httperf asks for each, and they differ in nothing else."""

import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from deathmatch.builds import clients
from deathmatch.load import httperf
from deathmatch.plan import files
from deathmatch.plan.paths import ROOT


class Echo(BaseHTTPRequestHandler):
    """Answers with the value asked for, and remembers what was asked."""

    protocol_version = "HTTP/1.1"
    asked: list[str]

    def do_GET(self):
        self.asked.append(self.path)
        body = parse_qs(urlsplit(self.path).query)["value"][0].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        """Print nothing."""


@pytest.fixture
def server():
    handler = type("Handler", (Echo,), {"asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield listening.server_port, handler.asked
        listening.shutdown()


@pytest.mark.parametrize("values", files.experiment("dynamic").factors["values"].levels)
def test_httperf_asks_for_what_the_level_says(server, values):
    port, asked = server
    load = files.experiment("dynamic").load.model_dump(exclude_none=True) | {"values": values}
    words = httperf.GENERATOR.command("127.0.0.1", port, load, 200, 1)
    done = subprocess.run(clients.located(words), capture_output=True, text=True, check=True)
    fields = httperf.GENERATOR.parse((done.stdout,), 1)
    assert fields["replies"] == fields["replies_2xx"] == len(asked) == 200
    fixed = load["uri"]
    assert len(set(asked)) == (1 if values == "repeated" else 200)
    assert {len(path) for path in asked} == {len(fixed)}
    assert fields["reply_content_bytes"] == len("benchmarks & servers")


def test_the_values_are_a_thousand_that_need_the_same_work():
    uris = (ROOT / httperf.VALUES).read_bytes().split(b"\0")[:-1]
    (length,) = {len(uri) for uri in uris}
    assert len(uris) == len(set(uris)) == 1000
    fixed = files.experiment("dynamic").load.uri
    assert length == len(fixed)
    assert all(uri.count(b"%20%26%20") == 1 == uri.count(b"=") for uri in uris)
