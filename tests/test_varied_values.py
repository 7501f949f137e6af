"""Varied values: real clients request each, and all need the same work."""

import subprocess
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

import pytest
from conftest import HUNG_S
from few import Server

from deathmatch.builds import clients
from deathmatch.load import httperf, registry
from deathmatch.load.generator import BODIES, BODY, FIRST_WRONG
from deathmatch.plan import files
from deathmatch.plan.experiment import expected_body
from deathmatch.plan.paths import ROOT

STALE_EVERY = 20


def body_of(path: str) -> bytes:
    """Return the body that the experiment expects for a target."""
    value = escape(parse_qs(urlsplit(path).query)["value"][0])
    return f"<http_test><value>{value}</value></http_test>".encode()


@pytest.mark.parametrize("replaced", [None, "httperf"])
@pytest.mark.parametrize("values", files.experiment("dynamic").factors["values"].levels)
def test_each_value_is_requested_and_its_body_expected(values, replaced):
    """The server answers each STALE_EVERY-th request as it did the first, the others rightly."""
    asked = []

    def answer(_, connection, request):
        path = request.split()[1].decode()
        asked.append(path)
        body = body_of(asked[0] if len(asked) % STALE_EVERY == 0 else path)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    generator = registry.generator("roundtrip" if replaced else "httperf", replaced)
    experiment = files.experiment("dynamic")
    load = experiment.load.model_dump(exclude_none=True) | {"values": values}
    body = expected_body([check.as_written for check in experiment.conformance], load)
    with Server(answer) as peer:
        words = generator.command("127.0.0.1", peer.port, load | {BODY: body}, 200, 0.5)
        done = subprocess.run(
            clients.located(words), capture_output=True, text=True, check=True, timeout=HUNG_S
        )
    fields = generator.parse((done.stdout,), 0.5)
    # Two more came before roundtrip's load; it ends a connection after a wrong answer.
    own = asked[2:] if replaced else asked
    assert fields["requests"] == len(own) and (replaced or len(own) == 100)
    assert len(set(own)) == (1 if values == "repeated" else len(own))
    assert {len(path) for path in own} == {len(load["uri"])}
    assert fields["reply_content_bytes"] == len(body)
    stale = len(asked) // STALE_EVERY if values == "varied" else 0
    assert generator.wrong_answers(fields) == stale == sum(generator.invalid(fields).values())
    if stale:
        first = f"status 200, content: {body_of(asked[0]).decode()}"
        assert fields[FIRST_WRONG].startswith(first)


def test_a_thousand_values_need_the_same_work():
    uris = (ROOT / httperf.VALUES).read_bytes().split(b"\0")[:-1]
    bodies = (ROOT / BODIES).read_bytes().split(b"\0")[:-1]
    assert bodies == [body_of(uri.decode()) for uri in uris]
    (length,) = {len(uri) for uri in uris}
    assert len(uris) == len(set(uris)) == 1000
    fixed = files.experiment("dynamic").load.uri
    assert length == len(fixed)
    assert all(uri.count(b"%20%26%20") == 1 == uri.count(b"=") for uri in uris)
