"""Other ways in than ./shell: GitHub's workflow, direnv; and the commands of the documents."""

import json
import os
import re
import shlex
import shutil
import subprocess

import pytest
import yaml
from conftest import ROOT, Tree, bench, project_files

from deathmatch.analysis import claims, findings
from deathmatch.builds import toolchain
from deathmatch.cli import main
from deathmatch.cli.commands import COMMANDS
from deathmatch.plan import files

WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
RUNS = [step["run"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "run" in step]


def test_the_workflows_container_has_what_the_containerfile_says_that_it_takes():
    said = [
        line for line in (ROOT / "Containerfile").read_text().splitlines() if "=NET_ADMIN" in line
    ]
    options = set(re.findall(r"--[\w-]+=\S+", said[0]))
    (run,) = [run for run in RUNS if "--cap-add" in run]
    assert options <= set(run.split())


def test_the_image_has_every_committed_dataset():
    """`tests/test_container.py` looks into the image."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    committed = {path.parts[1] for path in project_files() if path.parts[0] == "data"}
    assert sorted(name for name in committed if f"!data/{name}" not in lines) == []


def test_direnv_without_nix_has_what_the_shell_has():
    """With its two functions that the file calls: which way it goes, not what direnv does."""
    script = "has() { false; }; use() { exit 9; }; . ./.envrc; command -v httperf snakemake; env"
    plain = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": os.environ["HOME"]}
    done = subprocess.run(
        ["bash", "-euc", script], cwd=ROOT, env=plain, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].endswith("/build/httperf/bin/httperf") and lines[1].endswith(
        "venv/bin/snakemake"
    )
    assert "DEATHMATCH_TOOLCHAIN=debian" in lines
    assert f"PYTHONPATH={ROOT}/workflow/plugins" in lines
    assert shutil.which("httperf", path=plain["PATH"]) is None


def test_direnv_with_nix_uses_the_flake():
    script = (
        "has() { [ $1 = nix ]; }; nix() { echo experimental-features = flakes; }; "
        "use() { echo used $*; }; . ./.envrc"
    )
    done = subprocess.run(["bash", "-euc", script], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "used flake\n", done.stderr


def test_the_readmes_findings_hold_in_the_reference_and_are_not_fragile():
    text = (ROOT / "README.md").read_text()
    assert text.count("\n") <= 150
    said = [" ".join(one.split()) for one in re.findall(r"^- (.*(?:\n  .*)*)\.$", text, re.M)]
    results = claims.findings_of(findings.REFERENCE)
    firm = [one for one in results if one.standing == findings.HOLDS and not one.fragile]
    held = {one.finding.sentence for one in firm}
    assert len(said) == 5 and set(said) <= held


DOCUMENTS = [
    "README.md", ".github/CONTRIBUTING.md", "config/README.md", "data/README.md",
    "servers/README.md", "deathmatch/README.md",
    *(f"deathmatch/{name}/README.md" for name in ("data", "hosts")),
]  # fmt: skip


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_deathmatch_command_of_a_document_is_one(name):
    text = (ROOT / name).read_text()
    found = re.findall(
        r"(?:^    |`)(?:\./shell|bin/)\s?/?deathmatch ([a-z][^\n`|\")]*)", text, re.M
    )
    for line in found:
        command, *words = shlex.split(line, comments=True)
        main.parser(command, COMMANDS[command]).parse_args(words)
    assert found or name == ".github/CONTRIBUTING.md"
    assert "python -m deathmatch " not in text.replace(bench("docs").MARK, "")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_link_of_a_document_leads_to_a_file_and_a_heading(name):
    text = (ROOT / name).read_text()
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, heading = link.partition("#")
        file = (ROOT / name).parent / path if path else ROOT / name
        assert file.exists(), link
        headings = re.findall(r"^#+ (.*)$", file.read_text(), re.M) if heading else []
        slugs = {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings}
        assert not heading or heading in slugs, link


@pytest.mark.skipif(toolchain.name() != "debian", reason="Lua with a library takes Debian")
def test_the_readmes_server_and_dataset_are_measured(tree: Tree):
    """As the README writes them; a wrong answer would be the trial's outcome."""
    text = (ROOT / "README.md").read_text()
    (lua,) = re.findall(r"```lua\n(.*?)```", text, re.S)
    guide = text + (ROOT / "config/README.md").read_text()
    server, dataset, in_sittings, testbed, clients = re.findall(r"```toml\n(.*?)```", guide, re.S)
    tree.write("config/testbeds/lab.toml", testbed)
    tree.write("config/testbeds/labs.toml", f'extends = "lab"\n{clients}')
    beds = [files.testbed(name, tree.path) for name in ("lab", "labs")]
    assert [len(bed.client_sides) for bed in beds] == [1, 2]
    assert len(re.findall(r"^.+$", dataset, re.M)) <= 10, "an own dataset in ten lines"
    tree.write("servers/lua/server.lua", lua)
    tree.write("servers/lua/server.toml", server)
    tree.write("config/datasets/mine.toml", dataset)
    tree.write("config/datasets/parts.toml", f"{dataset}\n{in_sittings}")
    assert files.dataset("parts", tree.path).sitting_of("backlog", 3) == "backlog-2"
    script = (
        "from deathmatch.plan import matrix; found = matrix.trials('mine')\n"
        "print(len(found), *sorted({trial.server.name for trial in found}))"
    )
    assert tree.run("python", "-c", script).succeeded().text == "12 lua yaws\n"
    # Not in the tests' own network: a build may download.
    Tree(tree.path).deathmatch("build", "lua").succeeded()
    folder = "data/mine/backlog/lua/backlog=1,somaxconn=4096/1"
    tree.deathmatch("trial", folder).succeeded()
    assert json.loads((tree.path / folder / "trial.json").read_text())["outcome"] == "measured"
