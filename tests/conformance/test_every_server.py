"""Every server that this machine can run answers every experiment it serves, in every variant.

Not in the usual run, since building all of them takes minutes: ./shell pytest tests/conformance
"""

import json

import pytest
from conftest import Tree, copy_tree
from test_conformance import CHECK, LOAD_EXPERIMENTS, flags_of_emulators, wrong_log

from deathmatch.plan import files, matrix
from deathmatch.plan.trial import CONFIGURATION

SERVERS = sorted({server.name for each in LOAD_EXPERIMENTS for server in matrix.serving(each)})


@pytest.fixture(scope="module")
def project(tmp_path_factory, network):
    return copy_tree(tmp_path_factory.mktemp("every") / "tree"), network


@pytest.mark.parametrize("server", SERVERS)
def test_every_variant_conforms(project, server):
    path, network = project
    tree = Tree(path, network)
    parts = [
        f"[experiments.{name}]\nrates_rps = [1]\nduration_s = 1\n"
        + "".join(
            f'[[experiments.{name}.grids]]\nservers = ["{server}"]\n'
            + (f'{factor} = "all"\n' if factor else "")
            for factor in ("", *varied(server, name))
        )
        for name in LOAD_EXPERIMENTS
        if server in [each.name for each in matrix.serving(name)]
    ]
    tree.write("config/datasets/once.toml", 'title = "t"\ntrials = 1\nseed = 1\n' + "".join(parts))
    # Not in the tests' own network: a build may download.
    Tree(path).deathmatch("build", server, timeout_s=1200).succeeded()
    built = json.loads((path / f"build/servers/{server}/build.json").read_text())
    assert built["ok"], built["log"]
    done = tree.sandboxed("python", "-c", CHECK, "server.log", timeout_s=300).succeeded()
    found = [json.loads(line) for line in done.text.splitlines()]
    assert {one["experiment"] for one in found} == {
        name for name in LOAD_EXPERIMENTS if server in [each.name for each in matrix.serving(name)]
    }
    known = files.server(server).deviations
    for one in found:
        assert one["wrong"] is None, one
        failed = [
            check for check in one["checks"] if not check["ok"] and check["name"] not in known
        ]
        assert failed == [], (one["variant"], one["log"])
        assert one["stop"]["left"] == [], one["variant"]
        assert one["emulators"] == flags_of_emulators(one), one["variant"]
        assert wrong_log(one) is None


def varied(server: str, experiment: str) -> list[str]:
    """Return the factors that choose how this server runs in the experiment."""
    able = files.server(server).factors
    has = [name for name in ("schedulers", "readiness") if name in able]
    known = files.experiment(experiment).factors
    configurations = [CONFIGURATION] if files.server(server).configurations_in(experiment) else []
    return [name for name in has if name in known] + configurations
