"""Load generators refuse what libraries overlook, before anything is timed."""

from few import asked, faulty

from deathmatch.load import registry
from deathmatch.measure import client, conformance

REQUEST = {"name": "a page", "send": "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "status": [200]}


def test_httperf_takes_an_interim_answer_for_the_final_one(tmp_path):
    with faulty("early-hints") as port:
        assert conformance.check("127.0.0.1", port, [REQUEST])[0].ok
        seen = asked("httperf", "backlog", port, tmp_path)
    assert seen == "invalid answers: replies_1xx 10; good ones: 0"


def test_roundtrip_wants_bodies_of_one_length(tmp_path):
    with faulty("varies") as port:
        assert conformance.check("127.0.0.1", port, [REQUEST])[0].ok
        seen = asked("roundtrip", "readiness", port, tmp_path)
    assert seen.startswith("it left no whole report: roundtrip: ") and "length" in seen


def test_lost_answers_alone_are_no_fault_while_there_are_good_ones():
    generator = registry.generator("httperf")
    counts = dict.fromkeys(generator.columns, 0) | {"replies": 9, "replies_2xx": 9}
    assert client.answers_problem(generator, counts | {"errors_client_timeout": 1}) == ""
    none = dict.fromkeys(generator.columns, 0) | {"errors_client_timeout": 10}
    assert client.answers_problem(generator, none) == "no good answer: errors_client_timeout 10"
