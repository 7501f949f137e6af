"""Load generators refuse what libraries overlook, before anything is timed."""

from few import asked, faulty

from deathmatch.load import registry
from deathmatch.measure import client, conformance

REQUEST = {"name": "a page", "send": "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "status": [200]}


def test_a_client_of_every_kind_takes_an_interim_answer(tmp_path):
    with faulty("early-hints") as port:
        assert conformance.check("127.0.0.1", port, [REQUEST])[0].ok
        for client, experiment in (("httperf", "backlog"), ("roundtrip", "readiness")):
            assert asked(client, experiment, port, tmp_path) == ""


def test_a_wrong_answer_among_few_is_told_with_its_beginning(tmp_path):
    with faulty("other") as port:
        for number in range(10):
            assert conformance.check("127.0.0.1", port, [REQUEST])[0].ok, number
        seen = asked("httperf", "backlog", port, tmp_path)
    assert seen == (
        "invalid answers: replies_wrong_content 1, the first: status 200, content: Sorry, busy!; "
        "good ones: 9"
    )


def test_lost_answers_alone_are_no_fault_while_there_are_good_ones():
    generator = registry.generator("httperf")
    counts = dict.fromkeys(generator.columns, 0) | {"replies": 9, "replies_2xx": 9}
    assert client.answers_problem(generator, counts | {"errors_client_timeout": 1}) == ""
    none = dict.fromkeys(generator.columns, 0) | {"errors_client_timeout": 10}
    assert client.answers_problem(generator, none) == "no good answer: errors_client_timeout 10"
