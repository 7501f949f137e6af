"""Under load a good answer has the right status and body: real clients, a server with one habit.

Each load generator compares every answer, so the counts are exact.
"""

import subprocess

import pytest
from conftest import HUNG_S
from few import asked, faulty

from deathmatch.builds import clients
from deathmatch.load import registry
from deathmatch.load.generator import BODY, FIRST_WRONG
from deathmatch.measure import conformance
from deathmatch.measure.client import answers_problem
from deathmatch.plan import files
from deathmatch.plan.experiment import expected_body

REQUEST = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
LOADS = {
    "httperf": {"uri": "/", "requests_per_connection": 10, "timeout_s": 5},
    "roundtrip": {"request": REQUEST, "connections": 4, "timeout_s": 5},
}
# Load generator, the client in whose place it is, and how many answers it got before its load.
CLIENTS = [("httperf", None, 0), ("roundtrip", "httperf", 2), ("roundtrip", None, 2)]
RATE_RPS, DURATION_S = 400, 0.5


HELLO = {BODY: "Hello, world"}


def offered(
    client: str, replaced: str | None, habit: str, body: dict = HELLO, rate_rps: int = RATE_RPS
) -> tuple:
    """Return a load generator, and the fields of its report on a server with a habit."""
    generator = registry.generator(client, replaced)
    load = LOADS[replaced or client] | body
    with faulty(habit) as port:
        words = generator.command("127.0.0.1", port, load, rate_rps, DURATION_S)
        done = subprocess.run(
            clients.located(words), capture_output=True, text=True, timeout=HUNG_S, check=True
        )
    return generator, generator.parse((done.stdout,), DURATION_S)


WRONG = [
    ("other", "answer_different", "status 200, content: Sorry, busy!"),
    ("first-letter", "answer_different", "status 200, content: Jello, world"),
    ("longer", "wrong_length", "status 200, content: Hello, world!"),
    ("twice", "wrong_length", "status 200, after it: HTTP/1.1 200 OK..Content-Length"),
    ("unasked", "wrong_length", "status 200, after it: !"),
    ("created", "wrong_status", "status 201, "),
]


# In another's place, a client looks at an answer as it does by itself: not all habits again.
@pytest.mark.parametrize(
    ("client", "replaced", "first", "habit", "column", "seen"),
    [(*client, *wrong) for client in CLIENTS for wrong in WRONG[:: 2 if client[1] else 1]],
)
def test_each_wrong_answer_is_counted_and_the_first_is_shown(
    client, replaced, first, habit, column, seen
):
    generator, fields = offered(client, replaced, habit)
    numbers = range(first, first + fields["requests"])
    wrong = sum(number % 20 == 19 for number in numbers)
    assert generator.wrong_answers(fields) == wrong > 0
    assert generator.good(fields) == fields["requests"] - wrong
    assert fields[FIRST_WRONG].startswith(seen)
    own = "replies_wrong_length" if column == "wrong_length" else "replies_wrong_content"
    assert generator.invalid(fields) == {own if client == "httperf" else f"errors_{column}": wrong}


@pytest.mark.parametrize(("client", "replaced", "first"), CLIENTS)
def test_only_the_status_is_judged_where_no_body_is_known(client, replaced, first):
    generator, fields = offered(client, replaced, "varies", {})
    assert generator.wrong_answers(fields) == fields["errors_total"] == 0
    assert generator.good(fields) == fields["requests"] == RATE_RPS * DURATION_S


@pytest.mark.parametrize(("client", "replaced", "first"), CLIENTS)
def test_right_answers_that_differ_in_their_headers_are_good(client, replaced, first):
    generator, fields = offered(client, replaced, "odd")
    assert generator.invalid(fields) == {}
    assert generator.good(fields) == fields["requests"] == RATE_RPS * DURATION_S
    assert fields["errors_total"] == 0 and fields[FIRST_WRONG] is None


def test_a_connection_that_its_server_is_about_to_close_gets_no_request():
    """In closed loop the next request follows at once: it would meet a closed connection."""
    _, fields = offered("roundtrip", None, "odd", rate_rps=0)
    assert fields["errors_total"] == 0 and fields["replies"] == fields["requests"]


CHECK = {"name": "a page", "send": REQUEST, "status": [200]}


def test_the_check_before_a_trial_takes_an_interim_answer():
    with faulty("odd") as port:
        for _ in range(10):
            (found,) = conformance.check("127.0.0.1", port, [CHECK])
            assert found.ok, found.seen


def test_a_wrong_answer_before_a_trial_is_reported_with_its_beginning(tmp_path):
    with faulty("other") as port:
        for number in range(10):
            assert conformance.check("127.0.0.1", port, [CHECK])[0].ok, number
        seen = asked("httperf", "backlog", port, tmp_path)
    assert seen == (
        "invalid answers: replies_wrong_content 1, the first: status 200, content: Sorry, busy!; "
        "good ones: 9"
    )


def test_lost_answers_are_no_fault_while_others_are_good():
    generator = registry.generator("httperf")
    counts = dict.fromkeys(generator.columns, 0) | {"replies": 9, "replies_2xx": 9}
    assert answers_problem(generator, counts | {"errors_client_timeout": 1}) == ""
    none = dict.fromkeys(generator.columns, 0) | {"errors_client_timeout": 10}
    assert answers_problem(generator, none) == "no good answer: errors_client_timeout 10"


def test_the_body_that_an_experiment_expects_is_that_of_its_own_request():
    found = {}
    for name in files.names("experiment"):
        spec = files.experiment(name)
        if spec.client in LOADS:
            checks = [check.as_written for check in spec.conformance]
            found[name] = expected_body(checks, spec.load_as_written)
    hello = {found.pop(name) for name in [*found] if name not in ("static", "dynamic", "overhead")}
    assert hello == {"Hello, world"}
    assert found["static"] == "User-agent: *\nDisallow: /\n"
    assert found["dynamic"] == "<http_test><value>benchmarks &amp; servers</value></http_test>"
    # The first that fits is that of the echo; a trial has the checks of its own layer only.
    overhead = files.experiment("overhead")
    echo, *http = [check.as_written for check in overhead.conformance]
    assert expected_body([echo], overhead.load_as_written) == echo["send"]
    assert expected_body(http, overhead.load_as_written) == "Hello, world"
