"""The log of a program is cut while the program prints, and the program does not notice."""

import subprocess
import sys

from conftest import wait_for

from deathmatch.agent import children
from deathmatch.agent.children import Output, Outputs

LINES = 600_000
TALK = f"for n in range({LINES}): print(f'{{n:49}}')\nprint('said it all', flush=True); input()"


def test_a_log_that_grows_is_cut_and_its_writer_goes_on(tmp_path):
    log = Output(tmp_path / "server.log")
    log.check()
    log.file.write_text("$ a server\n")
    with log.file.open("ab") as printed:
        process = subprocess.Popen(
            [sys.executable, "-c", TALK], stdin=subprocess.PIPE, stdout=printed, text=True
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
    # Lines that are written while the file is cut come before the note.
    assert head.startswith("$ a server\n") and len(head) >= children.HEAD_BYTES
    assert "no more than 10 MB are kept]\n" in tail and tail.endswith(f"{LINES - 1}\nsaid it all\n")
    printed = 50 * LINES + len("$ a server\nsaid it all\n")
    kept = len(head) + len(tail)
    assert log.left_out_bytes >= 0.9 * (printed - kept) > 0


def test_a_log_of_usual_size_is_left_as_it_is(tmp_path):
    log = Output(tmp_path / "server.log")
    log.file.write_bytes(b"x" * children.LIMIT_BYTES)
    log.check()
    assert log.file.stat().st_size == children.LIMIT_BYTES
    assert log.left_out_bytes == 0


def test_a_thread_cuts_the_files_that_it_watches(tmp_path):
    watched, other = tmp_path / "watched", tmp_path / "other"
    lines = b"a line\n" * (2 * children.LIMIT_BYTES // 7)
    for file in (watched, other):
        file.write_bytes(lines)
    outputs = Outputs()
    assert outputs.left_out_bytes(watched) == 0, "it is not watched"
    outputs.watch(watched)
    outputs.watch(watched)
    outputs.watch(tmp_path / "not there yet")
    wait_for(lambda: watched.stat().st_size < children.LIMIT_BYTES, "it is cut")
    assert outputs.left_out_bytes(tmp_path / "not there yet") == 0
    assert watched.read_bytes().endswith(b"a line\n")
    size = other.stat().st_size
    assert size == len(lines)
    assert size - outputs.left_out_bytes(watched) <= watched.stat().st_size < 1.2e6
    assert outputs.left_out_bytes(other) == 0
    # A second cut adds to the first.
    before = outputs.left_out_bytes(watched)
    with watched.open("ab") as printed:
        printed.write(lines)
    assert outputs.left_out_bytes(watched) > before + children.LIMIT_BYTES / 2
