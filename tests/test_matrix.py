"""The matrix: its trials, their order, and the changes after which one is measured again."""

import json
import tomllib
from collections import Counter

import pytest
from conftest import ROOT, Tree

from deathmatch.builds import clients
from deathmatch.errors import UserError
from deathmatch.plan import files, matrix, validation_errors
from deathmatch.plan.experiment import Experiment
from deathmatch.run import progress

DATASETS = [name for name in files.names("dataset") if not files.dataset(name).frozen]


@pytest.mark.parametrize("dataset", DATASETS)
def test_each_repetition_visits_every_variant_once(dataset):
    spec, trials = files.dataset(dataset), matrix.trials(dataset)
    visits = Counter((t.experiment.name, t.server.name, t.variant.name, t.n) for t in trials)
    assert max(visits.values()) == 1
    per_variant = Counter((t.experiment.name, t.server.name, t.variant.name) for t in trials)
    for trial in trials:
        key = (trial.experiment.name, trial.server.name, trial.variant.name)
        assert per_variant[key] == spec.repetitions(trial.plan)
    # One sitting after the other, one repetition after the other.
    names = [None, *(sitting.name for sitting in spec.sittings)]
    order = [(names.index(spec.sitting_of(t.experiment.name, t.n)), t.n) for t in trials]
    assert order == sorted(order)
    assert len({trial.path for trial in trials}) == len(trials)


def test_every_server_that_serves_an_experiment_is_measured_in_full():
    trials = matrix.trials("full")
    for experiment in files.names("experiment"):
        measured = {trial.server for trial in trials if trial.experiment.name == experiment}
        assert measured >= set(matrix.serving(experiment, slow=False)), experiment


def test_order_is_random_but_the_same_each_time():
    first = [trial.path for trial in matrix.trials("quick")]
    assert first == [trial.path for trial in matrix.trials("quick")]
    n_1, n_2 = ([path.parent for path in first if path.name == n] for n in "12")
    assert n_1 != sorted(n_1)
    assert [path for path in n_1 if path in n_2] != n_2


def test_a_part_of_a_dataset_has_the_order_of_the_whole():
    whole = [trial.path for trial in matrix.trials("smoke")]
    for name in files.dataset("smoke").experiments:
        part = [trial.path for trial in matrix.trials("smoke", experiments=[name])]
        assert part == [path for path in whole if path in part]


BACKLOG = 'title = "t"\ntrials = {}\nseed = 1\n[experiments.backlog]\nrates_rps = [1, 2]\n'
BACKLOG += "duration_s = 1\n"
GRID = "[[experiments.backlog.grids]]\n"
DATASETS_MADE = {
    "blocks": BACKLOG.format(2)
    + GRID + 'servers = ["null", "yucan", "tornado"]\nbacklog = [1, 5]\n'
    'schedulers = ["one", "all"]\nsomaxconn = [128]\n'
    + GRID + 'servers = ["null"]\nbacklog = [5]\nsomaxconn = [128]\n',
    "own": BACKLOG.format(1)
    + GRID + 'servers = ["null"]\nbacklog = "all"\ntrials = 2\nrates_rps = [7]\nduration_s = 3\n'
    + GRID + 'servers = ["null", "yucan"]\nbacklog = [5]\n',
    "slow": BACKLOG.format(1) + GRID,
    "named": BACKLOG.format(1) + GRID + 'servers = ["yucan"]\n',
}  # fmt: skip
# Prints the trials of each of them, and of `smoke` without and with a new server.
TRIALS_OF = """
import json, sys
from deathmatch.plan import matrix
asked = [*((name, None) for name in sys.argv[1:]), ("own", ["tornado"]), ("smoke", None),
         ("smoke", ["mine"])]
print(json.dumps([
    [(str(t.path), t.server.name, t.experiment.name, t.n, t.spec(),
      matrix.find(t.path).spec_text() == t.spec_text()) for t in matrix.trials(*one)]
    for one in asked
]))
"""


def test_grids_and_servers_of_ones_own(shared_tree: Tree):
    tree = shared_tree
    for name, text in DATASETS_MADE.items():
        tree.write(f"config/datasets/{name}.toml", text)
    tree.server("mine", "ok", slow_build=True)
    text = (tree.path / "servers/mine/server.toml").read_text().replace("True", "true")
    tree.write("servers/mine/server.toml", text.replace('["backlog"]', '["c10k", "backlog"]'))
    tree.replace("servers/yucan/server.toml", "title =", "slow_build = true\ntitle =")
    done = tree.run("python", "-c", TRIALS_OF, *DATASETS_MADE).succeeded()
    blocks, own, slow, named, added, smoke, mine = json.loads(done.text)
    # Only tornado has a readiness mechanism, by default epoll; the second block adds nothing.
    variants = [
        f"{server}/backlog={backlog},schedulers={schedulers},somaxconn=128{readiness}"
        for server, readiness in (("null", ""), ("tornado", ",readiness=epoll"), ("yucan", ""))
        for backlog in (1, 5)
        for schedulers in ("all", "one")
    ]
    assert sorted(path for path, *_ in blocks) == [
        f"data/blocks/backlog/{variant}/{n}" for variant in variants for n in (1, 2)
    ]
    # A variant that both grids have is of the first; one that none has is of the experiment.
    of_grids = {
        (server, spec["factors"]["backlog"], n, *spec["rates_rps"], spec["duration_s"])
        for _, server, _, n, spec, _ in own
    }
    assert {("null", 5, 1, 7, 3), ("null", 5, 2, 7, 3), ("null", 128, 2, 7, 3)} <= of_grids
    assert {one for one in of_grids if one[0] == "yucan"} == {("yucan", 5, 1, 1, 2, 1)}
    assert added[0][4]["rates_rps"] == [1, 2]
    assert all(found for trials in (blocks, own, slow, named) for *_, found in trials)
    # A slow build is measured only where a dataset or a command names it.
    servers = {server for _, server, *_ in slow}
    assert "yaws" in servers and "yucan" not in servers
    assert {server for _, server, *_ in named} == {"yucan"}
    # The dataset names others for c10k.
    assert "mine" not in {server for _, server, *_ in smoke}
    assert sorted(experiment for _, _, experiment, *_ in mine) == ["backlog", "c10k"]


def test_spec_follows_what_decides_a_measurement(shared_tree: Tree):
    tree, script = shared_tree, (
        "from deathmatch.plan import matrix\n"
        "print(matrix.trials('smoke', ['null'], ['backlog'])[0].spec_text())"
    )  # fmt: skip

    def spec() -> dict:
        return json.loads(tree.run("python", "-c", script).succeeded().text)

    first = spec()
    assert first["sysctl"] == {"net.core.somaxconn": 4096}
    assert first["factors"] == {"backlog": 128, "schedulers": "one", "somaxconn": 4096}
    (tree.path / "servers/null/null.c").touch()
    tree.write("servers/null/__pycache__/x.pyc", "cached")
    tree.replace("config/datasets/smoke.toml", "rates_rps = [500, 2000]", "rates_rps = [7]")
    assert spec() == first | {"rates_rps": [7]}
    tree.replace("servers/null/null.c", "cheapest", "dearest")
    assert spec()["server_sha256"] != first["server_sha256"]


def test_numbers_of_a_spec_stay_as_they_are_written():
    """Otherwise what is measured already would count as of another specification."""
    text = matrix.trials("smoke", ["null"], ["static"])[0].spec_text()
    assert '"duration_s": 1,' in text and '"timeout_s": 5,' in text


def test_a_load_generator_is_named_only_where_it_is_not_the_experiments_own():
    spec, yucan = files.experiment("backlog"), files.server("yucan")
    own, other = matrix.product(spec, {"load_generator": ("httperf", "roundtrip")}, yucan)
    assert matrix.product(spec, {}, yucan) == [own] and "load_generator" not in own.factors
    assert other.factors == own.factors | {"load_generator": "roundtrip"}
    name = f"data/smoke/backlog/yucan/{other.name}/1"
    (trial,) = (each for each in matrix.trials("smoke") if str(each.path) == name)
    assert matrix.find(name) == trial and trial.spec()["client"] == "roundtrip"
    assert trial.spec()["load"] == spec.load_as_written
    assert clients.needed("backlog", trial.load_generator) == ["roundtrip"]
    with pytest.raises(UserError, match=r"(names|has) no trial"):
        matrix.find(f"data/smoke/backlog/yucan/{own.name},load_generator=httperf/1")
    assert files.experiment("c10k").load_generators == ()


@pytest.mark.parametrize(
    "path",
    [
        "data",
        "data/smoke/backlog/null/default/1",
        "data/smoke/backlog/null/somaxconn=4096,schedulers=one,backlog=128/1",
        "data/smoke/backlog/null/backlog=129,schedulers=one,somaxconn=4096/1",
        "data/smoke/backlog/null/backlog=128,schedulers=one,somaxconn=4096/one",
    ],
)
def test_any_other_path_finds_none(path):
    with pytest.raises(UserError, match=r"(names|has) no trial"):
        matrix.find(path)


def test_a_server_that_is_named_is_measured_in_all_that_it_serves():
    held = set(files.dataset("smoke").experiments)
    whole = matrix.trials("smoke")
    # One of those that serve the same experiments.
    for server in {(tuple(one.experiments), one.runs): one for one in files.servers()}.values():
        mine = matrix.trials("smoke", [server.name])
        wanted = set(server.experiments) & held if server.runs else set()
        assert {trial.experiment.name for trial in mine} == wanted
        # Trials that the dataset plans of it stay as they are, and none is added to them.
        planned = [trial for trial in whole if trial.server == server]
        there = {trial.experiment for trial in planned}
        assert {trial for trial in mine if trial.experiment in there} == set(planned)
    assert set(matrix.possible("smoke")) >= set(whole)


def test_a_level_sets_the_load_and_another_the_time_that_a_rate_is_offered():
    name = "data/quick/c10k/ws-null/schedulers=one,backlog=4096,environment=unthrottled"
    short = matrix.find(f"{name},opening=128,run=planned/1")
    long = matrix.find(f"{name},opening=10000,run=five-minutes/1")
    planned = files.dataset("quick").experiments["c10k"].duration_s
    assert (short.spec()["load"]["opening"], short.spec()["duration_s"]) == (128, planned)
    assert (long.spec()["load"]["opening"], long.spec()["duration_s"]) == (10_000, 300)
    # Requests under way at the end are waited for, up to the client's time-out of 30 s.
    longer_s = progress.seconds(long) - progress.seconds(short)
    assert longer_s == (300 - planned) + (30 - planned)
    # Without a pace of the dataset, the specification is that of data from before there was one.
    paced = short.model_copy(update={"plan": short.plan.model_copy(update={"step_s": 0.001})})
    assert paced.spec()["load"] == short.spec()["load"] | {"step_s": 0.001}
    assert "step_s" not in short.spec()["load"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("message_bytes = 33", "message_bytes = 33\nopening = 5", "`load` has 'opening'"),
        ('load = "opening"', 'load = "opennig"', "`load` has no key 'opennig'"),
        ("{ five-minutes = 300 }", "{ five = 300 }", "the factor 'run' has no level 'five'"),
    ],
)
def test_a_contradictory_factor_of_the_load_is_refused(old, new, said):
    text = (ROOT / "experiments/c10k.toml").read_text()
    assert text.count(old) == 1
    with pytest.raises(UserError) as raised:
        validation_errors.validated(Experiment, tomllib.loads(text.replace(old, new)), "c10k.toml")
    assert said in str(raised.value)
