"""Load generators that are missing or broken: no trial is measured with one."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import ROOT, Tree

from deathmatch.builds import clients
from deathmatch.errors import UserError
from deathmatch.load import registry
from deathmatch.measure import client as measured

# The first trials of the datasets below.
MISSING = "data/missing/overhead/eventlet-echo/layer=echo,schedulers=one,backlog=128/1"
FAILING = "data/failing/backlog/null/backlog=128,schedulers=one,somaxconn=4096/1"
HELD = "data/held/readiness/c-readiness/readiness=poll,idle_connections=100,backlog=128/1"
UNBUILT = (
    "data/unbuilt/c10k/ws-null/"
    "schedulers=one,backlog=4096,environment=unthrottled,opening=128,run=planned/1"
)


@pytest.fixture
def tree(shared_tree: Tree) -> Iterator[Tree]:
    """The copy of all tests of this file, whose environment changes for one test only."""
    shared_tree.environment.clear()
    yield shared_tree
    shared_tree.environment.clear()


def without(client: str) -> str:
    """Return a PATH that lacks this client."""
    folders = os.environ["PATH"].split(":")
    return ":".join(folder for folder in folders if not Path(folder, client).exists())


def replace_client(tree: Tree, client: str, script: str) -> None:
    """Put a shell script before a client on the tree's PATH; in the script, $real is the client."""
    program = tree.write(f"elsewhere/{client}", f"#!/bin/sh\nreal={shutil.which(client)}\n{script}")
    program.chmod(0o755)
    tree.environment["PATH"] = f"{program.parent}:{os.environ['PATH']}"


def is_recorded(tree: Tree, path: str) -> bool:
    return (tree.path / path / "trial.json").exists()


def test_a_missing_client_stops_the_plan_and_the_trial(tree: Tree):
    tree.dataset("missing", ["eventlet-echo"], [500], experiment="overhead")
    tree.environment["PATH"] = without("roundtrip")
    expected = "experiment 'overhead': the load generator roundtrip is missing\n  ./shell builds it"
    assert expected in tree.snakemake("-n", dataset="missing").failed().text
    assert expected in tree.deathmatch("trial", MISSING).failed().text
    assert not is_recorded(tree, MISSING)


def test_a_client_that_cannot_print_its_help_is_refused(tmp_path, monkeypatch):
    program = tmp_path / "httperf"
    program.write_text("#!/bin/sh\necho libssl.so.1 is not there >&2; exit 127\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(UserError) as error:
        clients.check_programs({"httperf": "here"}, planned=True)
    assert "the load generator httperf cannot run: " in str(error.value)
    assert "ended with exit status 127; it said:\n    libssl.so.1 is not there" in str(error.value)


# Before the load it is asked for ten connections, to see whether it takes the answers.
UNDER_LOAD = 'case "$* " in --help*|*"--num-conns=10 "*) exec $real "$@";; esac\n'
FAULTS = {
    "ended with exit status 127; it said:\n    no such luck": (
        UNDER_LOAD + "echo no such luck; exit 127\n"
    ),
    "left no whole report of its first requests: exit 1": (
        '[ "$1" = --help ] && exec $real --help\necho no luck; exit 1\n'
    ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_trial_whose_client_fails_has_no_record(tree: Tree, what):
    """The client fails under load, or before it."""
    tree.dataset("failing", ["null"], [100])
    logs = FAILING.removesuffix("1") + ".1.partial"
    replace_client(tree, "httperf", FAULTS[what])
    said = tree.deathmatch("trial", FAILING).failed().text
    told = f"{FAILING}: not measured, its logs are in {logs}: the load generator httperf {what}"
    assert f"deathmatch: {told}" in said and (tree.path / logs / "server.log").exists()
    assert not is_recorded(tree, FAILING)


REPORT = next((ROOT / "tests/data/yucan").glob("*/1")) / "httperf-500.txt"


def test_a_client_that_offered_nothing_is_at_fault_unless_the_server_ended(tmp_path):
    sound = REPORT.read_text()
    idle = re.sub(r"(?m)^ *[\d.]+ \d+\n", "", sound)
    idle = re.sub(r"(connections|requests|replies|2xx)([ =])\d+", r"\1\g<2>0", idle)
    for name, text in {"sound": sound, "cut": sound[:300], "idle": idle}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    context = SimpleNamespace(
        generator=registry.generator("httperf"), spec={"client": "httperf", "duration_s": 1},
        out=tmp_path, trial=SimpleNamespace(path="here"), clients=[None],
    )  # fmt: skip

    def points(state: str, *logs: str) -> list[dict]:
        known = {"server_state": state, "client_state": "exit 1"}
        return [known | {"log": f"{log}.txt"} for log in logs]

    for log, problem in (("cut", "left no whole report"), ("idle", "began no connection")):
        with pytest.raises(UserError, match=f"{problem}.* any of 2 rates; at the last: exit 1; it"):
            measured.check_reports(context, points("ran", log, log))
        measured.check_reports(context, points("ran", "sound", log))
        measured.check_reports(context, points("died: signal SIGKILL", log))


def test_a_trial_whose_holder_of_idle_connections_fails_has_no_record(tree: Tree):
    levels = 'idle_connections = [100]\nreadiness = ["poll"]'
    tree.dataset("held", ["c-readiness"], [500], levels=levels, experiment="readiness")
    replace_client(tree, "roundtrip", 'case "$*" in *--idle=*) exit 127;; esac; exec $real "$@"\n')
    said = tree.deathmatch("trial", HELD).failed().text
    assert "the load generator roundtrip ended with exit status 127" in said
    assert not is_recorded(tree, HELD)


def test_a_client_whose_build_fails_is_not_replaced_by_an_earlier_one(tree: Tree):
    tree.dataset("unbuilt", ["ws-null"], [10], experiment="c10k")
    toml = tree.path / "servers/ws-null/server.toml"
    sound = toml.read_text()
    tree.replace(
        "servers/ws-null/server.toml", 'build = """', 'build = """\necho no linker; exit 3'
    )
    tree.write("build/servers/ws-null/bin/wsload", "#!/bin/sh\n").chmod(0o755)
    tree.write("build/servers/ws-null/toolchain", "debian")
    tree.environment["PATH"] = without("wsload")
    said = tree.deathmatch("trial", UNBUILT).failed().text
    toml.write_text(sound)
    assert "experiment 'c10k': the load generator wsload could not be built; it said:" in said
    assert "\n    no linker\n" in said and not is_recorded(tree, UNBUILT)


IDENTITIES = """
import json
from pathlib import Path
from deathmatch.builds import toolchain
folder, seen = Path("build/servers/ws-null"), []
def look(): seen.append(toolchain.harness().get("wsload"))
look()
(folder / "bin").mkdir(parents=True)
(folder / "bin/wsload").write_text("#!/bin/sh")
(folder / "bin/wsload").chmod(0o755)
look()
for version in ("ws-null 0.1.0, rustc 1.63.0", "ws-null 0.1.0, rustc 1.90.0"):
    (folder / "build.json").write_text(json.dumps({"version": version}))
    look()
source = Path("clients/wsload/src/main.rs")
source.write_text(source.read_text() + "\\n")
look()
print(json.dumps(seen))
"""


def test_the_identity_of_a_client_that_a_server_s_build_makes(tree: Tree):
    """It changes with its sources and with the compiler."""
    shutil.rmtree(tree.path / "build/servers/ws-null", ignore_errors=True)
    tree.environment["PATH"] = without("wsload")
    none, *seen = json.loads(tree.run("python", "-c", IDENTITIES).succeeded().text)
    assert none is None
    assert all(each.startswith("built from clients/wsload, sha256 ") for each in seen)
    assert len(set(seen)) == 4 and seen[-1].endswith(", as ws-null 0.1.0, rustc 1.90.0")
