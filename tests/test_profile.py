"""Where a request's CPU time goes in the kernel: what perf says, and what is made of it."""

import json
import shutil
import sys

import pytest
from conftest import ROOT, Tree, traces

from deathmatch.analysis import profile as analysis
from deathmatch.analysis.provenance import Record
from deathmatch.instruments import call_chains

SCRIPT = """
        ffffffff9a01 tcp_poll
        ffffffff9a02 do_sys_poll
        ffffffff9a03 __x64_sys_poll
        ffffffff9a04 do_syscall_64
        7f0012345678 __poll

            55d0c0ffee main
"""


def test_call_chains_are_read_from_outside_inwards():
    told = SCRIPT.replace(" ffffffff9a0", " ffffffff9a000000")
    poll = ("do_syscall_64", "__x64_sys_poll", "do_sys_poll", "tcp_poll")
    assert list(call_chains.read(told.splitlines())) == [poll, ()]
    assert list(call_chains.read([])) == []


@pytest.mark.parametrize(
    ("stack", "phase"),
    [
        ((), call_chains.USER),
        (("do_syscall_64", "__x64_sys_poll", "do_sys_poll", "tcp_poll"), call_chains.WAIT),
        (("do_syscall_64", "__x64_sys_poll", "schedule", "__schedule"), call_chains.SLEEP),
        (("do_syscall_64", "__x64_sys_epoll_wait", "ep_poll"), call_chains.WAIT),
        (("do_syscall_64", "__x64_sys_recvfrom", "tcp_recvmsg"), call_chains.RECEIVE),
        (("do_syscall_64", "__x64_sys_sendto", "tcp_sendmsg", "__do_softirq"), call_chains.SEND),
        (("__x64_sys_poll", "asm_sysvec_apic_timer_interrupt", "irq_exit"), call_chains.INTERRUPT),
        (("__x64_sys_io_uring_enter", "io_issue_sqe", "io_send"), call_chains.SEND),
        (("__do_sys_io_uring_enter", "io_cqring_wait", "schedule"), call_chains.SLEEP),
        (("do_syscall_64", "syscall_exit_to_user_mode"), call_chains.OTHER),
        (("do_syscall_64", "__x64_sys_close"), call_chains.OTHER),
    ],
)
def test_a_call_chain_belongs_to_one_phase(stack, phase):
    assert call_chains.phase(stack) == phase


def record(*readings: dict) -> Record:
    return Record(ROOT / "data/profile/x.json", {}, list(readings))


def reading(repetition: int, cpu_ns: int, **phases: int) -> dict:
    counted = dict.fromkeys(call_chains.PHASES, 0) | {
        call_chains.WAIT: phases["wait"], call_chains.SEND: phases["send"],
    }  # fmt: skip
    return {
        "mechanism": "poll", "idle": 900, "rate_rps": 200, "repetition": repetition,
        "replies": 100, "cpu_ns": cpu_ns, "phases": counted,
    }  # fmt: skip


BOTH = record(
    reading(1, 10_000_000, wait=75, send=25), reading(2, 20_000_000, wait=150, send=50)
)  # fmt: skip


def test_cpu_time_is_shared_out_by_samples():
    each = analysis.phases(BOTH)
    bars = {row["phase"]: row for row in analysis.bars(each).to_dicts()}
    assert bars[call_chains.WAIT]["median"] == 112.5 and bars[call_chains.WAIT]["trials"] == 2
    assert bars[call_chains.USER]["median"] == 0
    assert analysis.whole(each, "poll", 900, 200).estimate == 150
    assert analysis.looking(each, "poll", 900, 200).estimate == 75
    assert analysis.whole(each, "epoll", 900, 200).trials == 0


def test_no_perf_is_told(tree: Tree, tmp_path):
    """Before anything is measured."""
    words = ["env", f"PATH={tmp_path}", sys.executable, "-m", "deathmatch", "profile", "mine"]
    done = tree.run(*words).failed()
    assert "PATH: the program perf is missing" in done.text and "linux-perf" in done.text
    assert "Traceback" not in done.text


@pytest.mark.skipif(not shutil.which("perf"), reason="nixpkgs is not known to hold perf")
def test_real_readings(tree: Tree):
    """Of a server that polls nine hundred descriptors, which takes most of its time."""
    before = traces()
    words = ["mine", "--repetitions", "1", "--duration", "2", "--idle", "900"]
    words += ["--mechanism", "poll", "--mechanism", "epoll"]
    done = tree.deathmatch("profile", *words).succeeded()
    assert "4 readings" in done.text
    found = json.loads((tree.path / "data/profile/mine.json").read_text())
    every = {(one["mechanism"], one["rate_rps"]): one for one in found["readings"]}
    assert {name for name, _ in every} == {"poll", "epoll"}
    for one in found["readings"]:
        assert one["cpu_ns"] > 0 and sum(one["phases"].values()) > 0, one
        assert one["replies"] > 0
    shares = {
        name: each[call_chains.WAIT] / sum(each.values())
        for name in ("poll", "epoll")
        if (each := every[name, 2000]["phases"])
    }
    assert shares["poll"] > 0.3 > shares["epoll"]
    assert traces() == before
