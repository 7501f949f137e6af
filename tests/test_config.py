"""Mistakes in settings: each is reported with its file, its line or key, and a remedy."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml
from conftest import ROOT, Tree, bench

from deathmatch.errors import UserError
from deathmatch.plan import files
from deathmatch.run import cli_config
from deathmatch.run.study import Study

docs = bench("docs")

GIVEN = [
    ("dataset=smok", "key dataset", "there is no dataset 'smok'", "did you mean 'smoke'"),
    ("testbed=netn", "key testbed", "there is no testbed 'netn'", "did you mean 'netns'"),
    ("servers=null,yuccan", "key servers", "there is no server 'yuccan'", "did you mean 'yucan'"),
    ("experiments=../x", "key experiments", "there is no experiment", "known: accept-queue"),
    ("datset=full", "key datset", "unknown key", "did you mean 'dataset'"),
    ("dataset=2009", "key dataset", "there is no dataset '2009'", "known: "),
    ("dataset=2009.5", "key dataset", "valid string, not 2009.5", "config/schemas/config.json"),
]


DEFAULTS = {"dataset": "smoke", "testbed": "netns", "servers": "all", "experiments": "all"}


def study(given: dict) -> Study:
    """Return the study that these settings ask for."""
    return cli_config.study(cli_config.settings(given))


@pytest.mark.parametrize(("given", "where", "what", "remedy"), GIVEN)
def test_mistake_on_the_command_line(monkeypatch, given, where, what, remedy):
    monkeypatch.chdir(ROOT)
    key, _, value = given.partition("=")
    with pytest.raises(UserError) as error:
        study(DEFAULTS | {key: yaml.safe_load(value)})
    for part in ("config/config.yaml or --config", where, what, remedy):
        assert part in str(error.value)


MINE, SERVER = "config/datasets/mine.toml", "servers/mine/server.toml"
TESTBED, EXPERIMENT = "config/testbeds/mine.toml", "experiments/mine.toml"
GOOD = {
    MINE: """title = "mine"
trials = 1
seed = 1

[experiments.mine]
rates_rps = [500, 2000]
duration_s = 1

[[experiments.mine.grids]]

[[experiments.mine.grids]]
servers = ["mine"]
backlog = [1]
""",
    SERVER: """title = "mine"
language = "C"
source = "ours"
about = "A test."
version = "true"
experiments = ["mine"]
build = "mkdir -p {build}/bin"
run = "mine {host} {port} {backlog}"

[packages]
tools = []

[factors]
backlog = []
""",
    TESTBED: """title = "mine"
kind = "netns"
descriptors = 1024
sample_interval_s = 1

[server]
address = "10.77.0.1/24"
cpus = "first"
sysctl = {}

[client]
address = "10.77.0.2/24"
cpus = "last"
sysctl = {}
""",
    EXPERIMENT: """title = "mine"
source = "ours"
question = "Does it?"
client = "httperf"

[load]
uri = "/"
requests_per_connection = 1
timeout_s = 5

[factors.backlog]
title = "listen backlog"
levels = [1, 5]
default = 5

[[conformance]]
name = "it answers"
send = "GET"
status = [200]
""",
}
RATES = "rates_rps = [500, 2000]"
# file, old text, new text, key, what
WRITTEN = [
    (MINE, RATES, RATES + "\nrate = 1", "experiments.mine.rate",
     "unknown key\n  did you mean 'rates_rps'"),
    (MINE, RATES, "rates_rps = [0, 500]", "experiments.mine.rates_rps",
     "a rate of 0 is a closed loop, and the client httperf has none"),
    (MINE, RATES, RATES + "\nstep_s = 0.001", "experiments.mine.step_s",
     "the client of 'mine' sends nothing in steps"),
    (MINE, RATES, "rates_rps = [500, 500]", "experiments.mine.rates_rps", "500 is listed twice"),
    (MINE, RATES, "", "experiments.mine.rates_rps", "this key is missing"),
    (MINE, "backlog = [1]", "bakclog = [1]", "experiments.mine.grids.1.bakclog",
     "has no factor 'bakclog'"),
    (MINE, "backlog = [1]", "backlog = [2]", "experiments.mine.grids.1.backlog", "has no level 2"),
    (MINE, '["mine"]', '["otp-store"]', "experiments.mine.grids.1.servers",
     "'otp-store' does not serve 'mine'"),
    (MINE, RATES, RATES + '\nsearch = { servers = ["otp-store"] }',
     "experiments.mine.search.servers", "'otp-store' does not serve 'mine'"),
    (MINE, RATES, RATES + "\nsearch = { overload_shares = [1.5], overload_s = 6 }",
     "experiments.mine.search.overload_s", "in 6 s an overload looks answered"),
    (MINE, RATES, RATES + "\nsearch = { overload_shares = [1.5] }",
     "experiments.mine.search.overload_shares", "no grid has the load generator"),
    (MINE, "experiments.mine", "experiments.mien", "experiments.mien",
     "there is no experiment 'mien'"),
    (SERVER, "{host}", "{hots}", "run", "unknown placeholder {hots}\n  known: {build}"),
    (SERVER, "{port}", "{port", "run", "a literal brace is written twice"),
    (SERVER, "{port}", "{port:d}", "run", "placeholder 'port' must be a name only"),
    (SERVER, "mine {host}", "mine '{host}", "run", "No closing quotation"),
    (SERVER, "backlog = []", "bakclog = []", "factors.bakclog",
     "no experiment that it serves has this factor"),
    (SERVER, "backlog = []", "backlog = [7]", "factors.backlog", "has the level 7\n  known: 1"),
    (SERVER, "[factors]", "[deviations]\n\"it replies\" = \"No.\"\n\n[factors]",
     "deviations.it replies", "no experiment that it serves has this check"),
    (SERVER, "[packages]", "[packages", "", "not TOML: "),
    (SERVER, 'title = "mine"', "title = 1", "title", "valid string, not 1"),
    (SERVER, 'title = "mine"', 'title = """a\nb"""', "title", "it must be one line"),
    (SERVER, 'title = "mine"', 'title = "**"', "title", "with a letter or a digit"),
    (SERVER, 'title = "mine"', r'title = "\u001b[31mred"', "title",
     r"it holds the control character '\x1b'"),
    (SERVER, 'source = "ours"', 'source = "walkin"', "source", "no reference has the key"),
    (SERVER, "tools = []", 'pypi = "lock.txt"', "packages.pypi", "folder has no lock.txt"),
    (SERVER, "tools = []", 'npm = "lock.json"', "packages.npm", "its list must be called"),
    (SERVER, 'build = "mkdir -p {build}/bin"', 'sources = ["servers/nul"]', "sources",
     "there is no servers/nul"),
    (SERVER, 'title = "mine"', 'title = " cherryPY"', "title",
     "has the title"),
    (SERVER, "mine {host} {port} {backlog}", "mine {host} 80 {backlog}", "run",
     "does not use {port}"),
    (SERVER, "[factors]",
     '[configurations.tuned]\nexperiments = ["static"]\nabout = "x"\n\n[factors]',
     "configurations.tuned.experiments", "does not serve 'static'"),
    (TESTBED, 'cpus = "last"', 'cpus = "last"\nspare_sources = "10.78.0.5/28"',
     "client", "has host bits set"),
    (SERVER, 'title = "mine"', 'extends = "nul"', "extends",
     "there is no server 'nul'\n  did you mean 'null'"),
    (SERVER, 'title = "mine"', 'extends = "mine"', "extends", "it extends itself"),
    (SERVER, 'title = "mine"', 'extends = "yucan-otp29"', "extends",
     "'yucan-otp29' itself extends a server, 'yucan'\n  extend 'yucan'"),
    (SERVER, 'title = "mine"', 'title = "mine"\nextends = "null"\nnot_run = ""', "not_run",
     "the extended file has no such key to remove\n  leave the key out"),
    (EXPERIMENT, 'client = "httperf"\n', "", "", "an experiment has a `client`, or `measures"),
    (EXPERIMENT, "levels = [1, 5]", "levels = [1, 2.5]", "factors.backlog.levels.1",
     "valid string or Input should be a valid integer"),
    (EXPERIMENT, 'send = "GET"\n', "", "conformance.0", "either `send` or `frames`"),
]  # fmt: skip

# Runs in a copy of the tree: makes each mistake, prints what the check says, undoes it.
CHECK_EACH = """
import json, sys
from pathlib import Path
from deathmatch.run import cli_config
from deathmatch.errors import UserError
good, written = json.load(sys.stdin)
for name, text in good.items():
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(text)
said = []
for name, old, new in [[next(iter(good)), "", ""], *written]:
    if old:
        Path(name).write_text(good[name].replace(old, new))
    try:
        cli_config.study(cli_config.settings(
            {"dataset": "mine", "testbed": "mine", "servers": "all", "experiments": "all"}
        )).trials
        said.append("nothing")
    except UserError as error:
        said.append(str(error))
    Path(name).write_text(good[name])
json.dump(said, sys.stdout)
"""


@pytest.fixture(scope="module")
def said(shared_tree: Tree) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", CHECK_EACH], cwd=shared_tree.path, check=True,
        input=json.dumps([GOOD, [case[:3] for case in WRITTEN]]), capture_output=True, text=True,
    )  # fmt: skip
    without_mistake, *said = json.loads(done.stdout)
    assert without_mistake == "nothing"
    return said


@pytest.mark.parametrize("index", range(len(WRITTEN)), ids=[f"{w[0]}-{w[3]}" for w in WRITTEN])
def test_mistake_in_a_file(said: list[str], index: int):
    name, _, _, key, what = WRITTEN[index]
    assert said[index].startswith(f"{name}, key {key}: " if key else f"{name}: ")
    assert what in said[index]


def test_a_mistake_reaches_the_user_as_one_message(shared_tree: Tree):
    done = shared_tree.snakemake("-n", dataset="smok").failed()
    assert "there is no dataset 'smok'\n  did you mean 'smoke'" in done.text
    assert "builds:" not in done.text


def test_two_config_options_are_refused():
    with pytest.raises(UserError, match="--config is given more than once"):
        cli_config.check_words(["--config", "dataset=smoke", "--config", "servers=null"])


def test_settings_that_are_no_yaml(tmp_path):
    file = tmp_path / "config.yaml"
    with pytest.raises(UserError, match=r"config.yaml: cannot be read: .*No such file"):
        cli_config.check_file(file)
    for text, what in (
        ("", "it holds no keys"),
        ("dataset: quick\nservers: [a,\n", "cannot be read: .*line 3"),
        ("dataset: \ud800", "cannot be read: .*utf-8"),
        ("a: " + "[" * 3000, "cannot be read: "),
    ):
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        with pytest.raises(UserError, match=rf"config.yaml: {what}.*\n.*git checkout"):
            cli_config.check_file(file)


def test_settings_that_yaml_reads_in_its_own_way(monkeypatch):
    monkeypatch.chdir(ROOT)
    cli_config.check_file(Path("config/config.yaml"))
    given = yaml.safe_load("\ufeffdataset: smoke\nservers: [null, yaws]\n")
    assert study(DEFAULTS | given).served == ["null", "yaws"]


@pytest.mark.parametrize(
    ("servers", "experiments", "said"),
    [
        ("otp-store", "backlog",
         "    servers/otp-store does not serve backlog; it serves storage\n  its experiments: "),
        ("misultin", "all", "    servers/misultin cannot run here: "),
        (",", "all", "nothing to measure\n  its experiments: "),
    ],
)  # fmt: skip
def test_nothing_to_measure(monkeypatch, servers, experiments, said):
    monkeypatch.chdir(ROOT)
    with pytest.raises(UserError) as error:
        study(DEFAULTS | {"servers": servers, "experiments": experiments})
    assert str(error.value).startswith("dataset 'smoke': nothing to measure")
    assert said in str(error.value)


def test_files_of_other_editors_are_read(tmp_path):
    """A byte-order mark, tabs, the line ends of another system; but what is no UTF-8 is one."""
    path = tmp_path / "config" / "datasets" / "x.toml"
    path.parent.mkdir(parents=True)
    path.write_bytes(GOOD[MINE].encode("UTF-16"))
    with pytest.raises(UserError, match=r"x.toml: not TOML: 'utf-8' codec can't decode"):
        files.dataset("x", tmp_path)
    text = GOOD[MINE].replace("\n", "\r\n").replace(" = ", "\t=\t")
    path.write_bytes(text.encode("UTF-8-SIG"))
    assert files.dataset("x", tmp_path).title == "mine"


@pytest.mark.parametrize(
    ("kind", "name"), [("server", "größe"), ("experiment", "a.b"), ("dataset", "quick (copy)")]
)
def test_a_name_that_no_command_could_use(tmp_path, kind, name):
    path = files.path_of(kind, name, tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("")
    blamed = path.parent if kind == "server" else path
    with pytest.raises(UserError) as error:
        files.names(kind, tmp_path)
    said = f"{blamed.relative_to(tmp_path)}: {name!r} cannot be the name of a {kind}\n  rename it: "
    assert str(error.value).startswith(said)


def test_a_folder_without_its_file(tmp_path):
    (tmp_path / "servers" / "mine").mkdir(parents=True)
    with pytest.raises(UserError, match=r"servers/mine holds no server.toml\n  write it: "):
        files.server("mine", tmp_path)
    # An editor's own file is no dataset.
    (tmp_path / "config" / "datasets").mkdir(parents=True)
    (tmp_path / "config" / "datasets" / ".#quick.toml").write_text("")
    assert files.names("dataset", tmp_path) == []


@pytest.mark.parametrize("kind", files.MODELS)
def test_every_file_of_the_project_fits_its_schema(kind):
    """The models say of each file what the schemas say that are made from them."""
    schema = jsonschema.Draft202012Validator(docs.json_schema(files.MODELS[kind]))
    assert files.names(kind)
    for name in files.names(kind):
        assert files.load(kind, name).name == name
        schema.validate(tomllib.loads(files.path_of(kind, name).read_text()))


def test_schemas_and_reference_are_those_of_the_models():
    for file, text in docs.written().items():
        assert file.read_text() == text, f"{file}: run ./shell python bench/docs.py"


def test_a_schema_refuses_what_the_model_refuses():
    schema = jsonschema.Draft202012Validator(docs.json_schema(files.MODELS["testbed"]))
    whole = tomllib.loads(GOOD[TESTBED])
    part = {"extends": "netns", "title": "mine", "server": {"memory_share": 0.5}}
    assert schema.is_valid(whole) and schema.is_valid(part)
    assert not schema.is_valid(whole | {"server": part["server"]})
    assert not schema.is_valid(part | {"server": {"memory_shar": 0.5}})
    schema = jsonschema.Draft202012Validator(docs.json_schema(files.MODELS["server"]))
    part = {"extends": "null", "build": "", "configurations": {"tuned": {}}}
    assert schema.is_valid(part) and not schema.is_valid(part | {"title": " "})
    assert not schema.is_valid(dict(list(part.items())[1:]))


def test_a_testbed_holds_what_the_one_says_that_it_extends(tmp_path):
    own = 'extends = "base"\n[server]\ncpus = "all"\n[server.sysctl]\n"net.core.somaxconn" = 128\n'
    top = 'extends = "own"\ntitle = "top"\n[server.sysctl]\n"net.ipv4.tcp_tw_reuse" = 1\n'
    for name, text in {"base": GOOD[TESTBED], "own": own, "top": top}.items():
        path = files.path_of("testbed", name, tmp_path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    base, top = files.testbed("base", tmp_path), files.testbed("top", tmp_path)
    assert (top.title, top.client) == ("top", base.client)
    changed = {"cpus": "all", "sysctl": {"net.core.somaxconn": 128, "net.ipv4.tcp_tw_reuse": 1}}
    assert top.server == base.server.model_copy(update=changed)


SYSTEM = """title = "old"
language = "C"
build = "make"
experiments = ["one", "two"]

[release]
name = "old 1"
jump = "Of this release."

[packages]
tools = ["cc"]
pypi = "requirements.txt"

[limits]
backlog = "5."
log = "Off."

[configurations.plain]
about = "As it comes."
[configurations.tuned]
about = "Not so."

[factors]
backlog = []
readiness = ["epoll"]
"""
RELEASE = """extends = "old"
title = "new"
build = ""

[release]
name = "old 2"

[packages]
pypi = ""

[limits]
backlog = "128."
log = ""
heap = "1 MB."

[configurations]
tuned = {}

[factors]
backlog = []
"""


def test_a_release_holds_what_its_system_says_and_it_does_not(tmp_path):
    """`release` and `factors` are its own or its system's; other tables are taken key by key."""
    for name, text in {"old": SYSTEM, "releases/new": RELEASE}.items():
        path = tmp_path / "servers" / name / "server.toml"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert files.names("server", tmp_path) == ["new", "old"]
    assert files.written("server", "new", tmp_path) == {
        "extends": "old", "title": "new", "language": "C", "experiments": ["one", "two"],
        "release": {"name": "old 2"}, "packages": {"tools": ["cc"]},
        "limits": {"backlog": "128.", "heap": "1 MB."},
        "configurations": {"plain": {"about": "As it comes."}}, "factors": {"backlog": []},
    }  # fmt: skip
    (tmp_path / "servers" / "new").mkdir()
    (tmp_path / "servers" / "new" / "server.toml").write_text(SYSTEM)
    with pytest.raises(UserError, match="servers/new and servers/releases/new have the same name"):
        files.names("server", tmp_path)
