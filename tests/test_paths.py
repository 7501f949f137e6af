"""Names, levels and paths in settings stay in their folders and are one word for a shell."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from test_config import GOOD, SERVER

from deathmatch.builds import server_commands
from deathmatch.cli import main as command_line
from deathmatch.errors import UserError
from deathmatch.hosts import cgroup
from deathmatch.paper import display
from deathmatch.plan import files, validation_errors

HOSTILE = ["$(touch PWNED)", "a\ntouch PWNED", "../../x", "-n", "a b", "{host}", ""]
# Values that are quoted words of a shell already.
QUOTED = {"STUDY.options", "params.options"}


@pytest.mark.parametrize("level", HOSTILE)
def test_a_level_is_one_word_and_the_name_of_a_folder(level):
    text = (ROOT / "experiments" / "backlog.toml").read_text()
    value = validation_errors.parse(text.encode(), "backlog.toml")
    value["factors"]["schedulers"]["levels"] = [level]
    with pytest.raises(UserError):
        validation_errors.validated(files.MODELS["experiment"], value, "x.toml")
    value = validation_errors.parse(
        (ROOT / "config/datasets/quick.toml").read_bytes(), "quick.toml"
    )
    value["experiments"]["backlog"]["grids"][0]["schedulers"] = [level]
    with pytest.raises(UserError):
        validation_errors.validated(files.MODELS["dataset"], value, "x.toml")


@pytest.mark.parametrize("key", ["../../../etc/passwd", "net/core", "a", "net. x"])
def test_a_kernel_setting_is_below_proc_sys(key):
    value = validation_errors.parse(
        (ROOT / "config/testbeds/netns.toml").read_bytes(), "netns.toml"
    )
    value["server"]["sysctl"] = {key: 1}
    with pytest.raises(UserError):
        validation_errors.validated(files.MODELS["testbed"], value, "x.toml")


@pytest.fixture
def project(tmp_path):
    """A project whose servers/mine has a list, and links, that lead out of it."""
    root, outside = tmp_path / "project", tmp_path / "outside"
    for name, text in GOOD.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    references = root / "paper" / "source" / "references.bib"
    references.parent.mkdir(parents=True)
    references.write_bytes((ROOT / "paper/source/references.bib").read_bytes())
    outside.mkdir()
    (outside / "x.txt").write_text("")
    (root / "servers/mine/inside.txt").write_text("")
    (root / "servers/mine/link.txt").symlink_to(outside / "x.txt")
    (root / "link").symlink_to(outside)
    return root


@pytest.mark.parametrize(
    "listed",
    ['pypi = "../../../outside/x.txt"', 'pypi = "link.txt"', 'pypi = "a\\u0000b"',
     'tools = ["../sh"]', 'debian = ["-y"]', 'nix = ["a; b"]'],
)  # fmt: skip
def test_a_server_s_lists_stand_in_its_own_folder(project, listed):
    file = project / SERVER
    file.write_text(GOOD[SERVER].replace("tools = []", 'pypi = "inside.txt"'))
    files.server("mine", project)
    file.write_text(GOOD[SERVER].replace("tools = []", listed))
    with pytest.raises(UserError) as caught:
        files.server("mine", project)
    assert caught.value.where.startswith(f"{SERVER}, key ")


@pytest.mark.parametrize("path", ["..", "/etc", "link", "a\\u0000b", "a" * 5000])
def test_a_server_s_sources_stand_in_the_project(project, path):
    file = project / SERVER
    file.write_text(f'sources = ["servers/mine"]\n{GOOD[SERVER]}')
    files.server("mine", project)
    file.write_text(f'sources = ["{path}"]\n{GOOD[SERVER]}')
    with pytest.raises(UserError, match="in the project") as caught:
        files.server("mine", project)
    assert caught.value.where == f"{SERVER}, key sources"


def test_paths_are_one_word_of_a_server_s_commands(monkeypatch, tmp_path):
    """The shell that runs them does not run what a folder is called."""
    folder = tmp_path / "a b; touch PWNED; $(touch PWNED)"
    folder.mkdir()
    monkeypatch.setattr(server_commands, "build_dir", lambda name: folder)
    command, values = "ls -d {build} {port}", {"port": "80; touch PWNED"}
    filled = server_commands.fill(command, files.server("null"), values)
    assert shlex.split(filled) == ["ls", "-d", str(folder), "80; touch PWNED"]
    subprocess.run(["sh", "-c", filled], cwd=tmp_path, capture_output=True)
    assert not (tmp_path / "PWNED").exists()


def test_a_control_group_s_folder_is_one_word():
    group = cgroup.Group(None, Path('/sys/fs/cgroup/$(touch PWNED)"; x'), 2)
    assert shlex.split(group.joining())[-1] == f"{group.folder}/cgroup.procs"


def test_every_value_of_a_rule_is_quoted_for_its_shell():
    rules = [ROOT / "Snakefile", *(ROOT / "workflow").glob("*.smk")]
    seen = 0
    for file in rules:
        for shell in re.findall(r"\n    +shell:\n((?:        .*\n)+)", file.read_text()):
            code = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', shell)).replace("{{}}", "")
            for place in re.findall(r"\{([^{}]+)\}", code):
                seen += 1
                assert place.endswith(":q") or place in QUOTED, f"{file.name}: {{{place}}}"
    assert seen > 15


@pytest.mark.parametrize("name", ["../../x", "-n"])
def test_a_notebook_s_parameters_are_names_of_datasets(tmp_path, name):
    out = tmp_path / "out.ipynb"
    words = ["notebook", "notebooks/01-backlog.md", f"--out={out}"]
    with pytest.raises(UserError, match="cannot be the name of a dataset"):
        command_line.main([*words, f"--dataset={name}"])
    with pytest.raises(UserError, match="cannot be the name of a dataset"):
        display.setup(name)
    assert not out.exists()
