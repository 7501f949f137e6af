"""A study on three machines that ssh reaches: one server, two clients that share the load."""

import json

import conftest
import lab
import pytest
from conftest import AS_ROOT, Tree
from lab import Lab

TRIAL = "data/small/backlog/null/backlog=128,schedulers=one,somaxconn=4096/1"


@pytest.fixture(scope="module", params=["root", "user"] if AS_ROOT else ["user"])
def machines(request, tmp_path_factory):
    tree = Tree(conftest.copy_tree(tmp_path_factory.mktemp("lab")))
    yield from lab.make(tree, request.param)


def test_a_trial(machines: Lab):
    machines.tree.dataset("small", ["null"], [200])
    done = machines.trial(TRIAL)
    print(done.text)
    assert done.status == 0
    record = json.loads((machines.tree.path / TRIAL / "trial.json").read_text())
    print(json.dumps({k: v for k, v in record.items() if k not in ("spec", "hosts")}, indent=1))
