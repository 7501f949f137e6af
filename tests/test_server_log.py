"""A server's log is cut while the server writes into it, which notices nothing."""

import subprocess
import sys

from conftest import wait_for
from deathmatch.measure.server_log import ServerLog

from deathmatch.measure import server_log

LINES = 600_000
TALK = f"for n in range({LINES}): print(f'{{n:49}}')\nprint('said it all', flush=True); input()"


def test_a_log_that_grows_is_cut_and_its_writer_goes_on(tmp_path):
    log = ServerLog(tmp_path / "server.log")
    log.check()
    log.file.write_text("$ a server\n")
    with log.file.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", TALK], stdin=subprocess.PIPE, stdout=output, text=True
        )

    def ended() -> bool:
        log.check()
        assert log.file.stat().st_size < 50 * LINES
        return log.file.read_bytes().endswith(b"said it all\n")

    wait_for(ended, "it has said all", process)
    assert process.poll() is None, "no signal, no pipe that is full"
    process.communicate("\n")
    assert process.returncode == 0
    text = log.file.read_text()
    assert len(text) < 50 * LINES
    head, _, tail = text.partition("\n[deathmatch: about ")
    # What is written as the file is cut comes before the note.
    assert head.startswith("$ a server\n") and len(head) >= server_log.HEAD_BYTES
    assert "no more than 10 MB are kept]\n" in tail and tail.endswith(f"{LINES - 1}\nsaid it all\n")
    printed = 50 * LINES + len("$ a server\nsaid it all\n")
    kept = len(head) + len(tail)
    assert log.record()["left_out_bytes"] >= 0.9 * (printed - kept) > 0


def test_a_log_of_usual_size_is_left_as_it_is(tmp_path):
    log = ServerLog(tmp_path / "server.log")
    log.file.write_bytes(b"x" * server_log.LIMIT_BYTES)
    log.check()
    assert log.file.stat().st_size == server_log.LIMIT_BYTES
    assert log.record()["left_out_bytes"] == 0 and log.note() == ""
