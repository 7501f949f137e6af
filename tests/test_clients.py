"""Load generators that are missing, broken or others: no trial is measured with such a one."""

import json
import os
import shutil
from pathlib import Path

from conftest import Tree

OVERHEAD = """
title = "a test"
trials = 2
seed = 1

[experiments.overhead]
rates_rps = [0, 500]
duration_s = 0.5

[[experiments.overhead.grids]]
servers = ["eventlet-echo"]
schedulers = ["one"]
"""


def without(client: str) -> str:
    """Return a PATH on which this client is not."""
    folders = os.environ["PATH"].split(":")
    return ":".join(folder for folder in folders if not Path(folder, client).exists())


def instead(tree: Tree, client: str, script: str) -> None:
    """Put another program first on the tree's PATH, which knows the true one as $real."""
    program = tree.write(f"elsewhere/{client}", f"#!/bin/sh\nreal={shutil.which(client)}\n{script}")
    program.chmod(0o755)
    tree.environment["PATH"] = f"{program.parent}:{os.environ['PATH']}"


def trial(tree: Tree, dataset: str, server: str, n: int = 1) -> Path:
    return tree.trials(dataset)[server, n].relative_to(tree.path)


def recorded(tree: Tree, path: Path) -> dict | None:
    file = tree.path / path / "trial.json"
    return json.loads(file.read_text()) if file.exists() else None


def test_a_missing_client_stops_the_plan_and_the_trial_by_name(tree: Tree):
    tree.write("config/datasets/tiny.toml", OVERHEAD)
    tree.dataset("other", ["null"], [100])
    path = trial(tree, "tiny", "eventlet-echo")
    tree.environment["PATH"] = without("roundtrip")
    expected = "experiment 'overhead': the load generator roundtrip is missing\n  ./shell builds it"
    assert expected in tree.snakemake("-n", dataset="tiny").failed().text
    assert expected in tree.deathmatch("trial", path).failed().text
    assert recorded(tree, path) is None
    # An experiment that has no use for it can be measured.
    tree.snakemake("-n", dataset="other").succeeded()


def test_a_client_that_cannot_say_its_options_stops_the_plan(tree: Tree):
    tree.dataset("tiny", ["null"], [100])
    instead(tree, "httperf", "echo libssl.so.1 is not there >&2; exit 127\n")
    said = tree.snakemake("-n", dataset="tiny").failed().text
    assert "the load generator httperf cannot run: " in said
    assert "ended with exit status 127; it said:\n    libssl.so.1 is not there" in said


# Before the load it is asked for ten connections, to see whether it takes the answers.
UNDER_LOAD = 'case "$* " in --help*|*"--num-conns=10 "*) exec $real "$@";; esac\n'
FAILING = {
    "ended with exit status 127; it said:\n    no such luck": UNDER_LOAD
    + "echo no such luck; exit 127\n",
    "left no whole report of any of 2 rates; at the last: exit 1; it said:\n    ": UNDER_LOAD
    + '$real "$@" | head -n 5; exit 1\n',
    "began no connection at any of 2 rates; at the last: exit 0; it said:\n    ": UNDER_LOAD
    + '$real "$@" | sed "s/connections .* test/connections 0 requests 0 replies 0 test/; '
    's/2xx=[0-9]*/2xx=0/; /^ *[0-9.]* [0-9]*$/d"\n',
    "left no whole report of its first requests: exit 1": '[ "$1" = --help ] && exec $real --help\n'
    "echo no luck; exit 1\n",
}


def test_a_client_that_fails_is_not_the_server_s_fault(tree: Tree):
    """Under load, or before it; the trial fails, and has no record."""
    tree.dataset("tiny", ["null"], [100, 200])
    path = trial(tree, "tiny", "null")
    logs = f"{path.parent}/.1.partial"
    for what, script in FAILING.items():
        instead(tree, "httperf", script)
        said = tree.deathmatch("trial", path).failed().text
        told = f"{path}: not measured, its logs are in {logs}: the load generator httperf {what}"
        assert f"deathmatch: {told}" in said and (tree.path / logs / "server.log").exists()
        assert recorded(tree, path) is None


def test_a_holder_of_idle_connections_that_fails_is_not_the_servers_fault(tree: Tree):
    about = OVERHEAD.replace("overhead", "readiness").replace("eventlet-echo", "c-readiness")
    about = about.replace('schedulers = ["one"]', 'idle_connections = [100]\nreadiness = ["poll"]')
    tree.write("config/datasets/tiny.toml", about.replace("[0, 500]", "[500]"))
    instead(tree, "roundtrip", 'case "$*" in *--idle=*) exit 127;; esac; exec $real "$@"\n')
    path = trial(tree, "tiny", "c-readiness")
    said = tree.deathmatch("trial", path).failed().text
    assert "the load generator roundtrip ended with exit status 127" in said
    assert recorded(tree, path) is None


def test_a_server_that_dies_is_a_result_whatever_its_client_says(tree: Tree):
    tree.server("dies", "dies")
    tree.replace("experiments/backlog.toml", "timeout_s = 5", "timeout_s = 1")
    tree.dataset("tiny", ["dies"], [400, 410])
    instead(tree, "httperf", UNDER_LOAD + '$real "$@" | head -n 5\n')
    path = trial(tree, "tiny", "dies")
    tree.deathmatch("trial", path).succeeded()
    found = recorded(tree, path)
    assert found["outcome"] == "measured, with failures"
    assert "died: signal SIGKILL" in [point["server_state"] for point in found["points"]]


def test_a_client_of_another_build_does_not_go_on_with_a_dataset(tree: Tree):
    tree.dataset("tiny", ["null"], [100], trials=2)
    first, second = (trial(tree, "tiny", "null", n) for n in (1, 2))
    tree.deathmatch("trial", first).succeeded()
    tree.snakemake("-n", dataset="tiny").succeeded()
    instead(tree, "httperf", 'exec $real "$@"\n')
    for done in (tree.snakemake("-n", dataset="tiny"), tree.deathmatch("trial", second)):
        said = done.failed().text
        assert "two toolchains would be mixed: httperf is\n" in said
        assert f"({first})" in said and "(this machine now)" in said
    assert recorded(tree, second) is None


def test_a_client_whose_build_fails_is_not_replaced_by_an_earlier_one(tree: Tree):
    about = OVERHEAD.replace("overhead", "c10k").replace("[0, 500]", "[10]")
    about = about.replace('"eventlet-echo"', '"ws-null"')
    tree.write("config/datasets/tiny.toml", about)
    failing = 'build = """\necho no linker; exit 3'
    tree.replace("servers/ws-null/server.toml", 'build = """', failing)
    tree.write("build/servers/ws-null/bin/wsload", "#!/bin/sh\n").chmod(0o755)
    tree.write("build/servers/ws-null/toolchain", "debian")
    tree.environment["PATH"] = without("wsload")
    path = trial(tree, "tiny", "ws-null")
    said = tree.deathmatch("trial", path).failed().text
    assert "experiment 'c10k': the load generator wsload could not be built; it said:" in said
    assert "\n    no linker\n" in said and recorded(tree, path) is None


def test_what_a_client_is_that_a_servers_build_makes(tree: Tree):
    script = "from deathmatch.builds import toolchain; print(toolchain.harness().get('wsload'))"

    def said() -> str:
        return tree.run("python", "-c", script).succeeded().text.strip()

    tree.environment["PATH"] = without("wsload")
    assert said() == "None"
    tree.write("build/servers/ws-null/bin/wsload", "#!/bin/sh\n").chmod(0o755)
    seen = [said()]
    for version in ("ws-null 0.1.0, rustc 1.63.0", "ws-null 0.1.0, rustc 1.90.0"):
        tree.write("build/servers/ws-null/build.json", json.dumps({"version": version}))
        seen.append(said())
    source = tree.path / "clients/wsload/src/main.rs"
    source.write_text(source.read_text() + "\n")
    seen.append(said())
    assert all(each.startswith("built from clients/wsload, sha256 ") for each in seen)
    assert len(set(seen)) == 4 and seen[-1].endswith(", as ws-null 0.1.0, rustc 1.90.0")
