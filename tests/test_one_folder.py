"""The claim of servers/README.md: a folder is all that a new server takes."""

import html
import json
import re
import subprocess
from pathlib import Path

import pytest
from conftest import Tree, chromium, patient
from test_conformance import CHECK

from deathmatch.cli import main as command_line
from deathmatch.errors import UserError
from deathmatch.plan import files, new_server

# YAML reads these two names as numbers.
DATASET, SERVER = "2026", "404"
# Markdown must not interpret the title or the version, as markup or as a role.
TITLE = "1. @mine/own, *fast* [1] {eval}`2` <b>-- 'x'"
SMALL = """
title = "every server, but those that take a build"
trials = 2
seed = 1

[experiments.backlog]
rates_rps = [100, 200]
duration_s = 0.5

[[experiments.backlog.grids]]
omit = [
  "tornado-0.2", "tornado-1", "tornado-2.4", "twisted-12", "yaws-otp29",
  "yucan-otp23", "yucan-otp27", "yucan-otp29",
]
"""


def assert_needs_no_network(page: Path) -> None:
    asked, errors = [], []
    with chromium() as browser:
        tab = patient(browser.new_page())
        tab.on("request", lambda request: asked.append(request.url[:80]))
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.goto(page.as_uri())
        tab.get_by_text("Figures").first.click()
        tab.get_by_text("fig-measured-servers").wait_for()
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    assert errors == []


def test_from_a_new_folder_to_the_paper(tree: Tree):
    """The paper is made although another server cannot be measured, and the run reports why."""
    tree.never_client_limited()
    tree.write(f"config/datasets/{DATASET}.toml", SMALL)
    tree.server("exits", "exits")
    before = set(tree.path.rglob("*"))
    tree.deathmatch("new-server", SERVER).succeeded()
    made = {path for path in tree.path.rglob("*") if path.is_file()} - before
    ours = {path for path in made if not {".snakemake", "__pycache__"} & set(path.parts)}
    assert {path.parent for path in ours} == {tree.path / "servers" / SERVER}
    tree.replace(f"servers/{SERVER}/server.toml", f'title = "{SERVER}"', f'title = "{TITLE}"')
    tree.replace(
        f"servers/{SERVER}/server.toml",
        "\nversion = ",
        "\nversion = 'printf \"3 *stars* <i>\\033[31m\"' # ",
    )
    tree.run("git", "init", "--quiet").succeeded()
    tree.run("git", "add", "--all").succeeded()
    assert (SERVER, 1) in tree.trials(DATASET)
    failing = {"dataset": DATASET, "servers": f"{SERVER},exits"}
    done = tree.snakemake(**failing).failed()
    told = "servers/exits: did not start, in 2 trials:\n    ended before it listened"
    assert told in done.text, done.text
    assert "fix servers/exits and run again" in done.text
    page, pdf = (tree.path / f"paper/{DATASET}/report.{kind}" for kind in ("html", "pdf"))
    paper, failed, todo = done.text.splitlines()[-3:]
    assert paper == f"report: paper/{DATASET}/report.html and paper/{DATASET}/report.pdf"
    assert "servers/exits did not start, in 2 trials: ended before it listened" in failed
    assert f"fix servers/exits, then ./shell snakemake --config dataset={DATASET}" in todo
    spec = json.loads((tree.path / f"figures/{DATASET}/fig-measured-servers.json").read_text())
    assert TITLE in json.dumps(spec)
    text = " ".join(html.unescape(page.read_text()).split())
    assert text.index(f">{TITLE}</td>") < text.index('id="tbl-findings"')
    printed = subprocess.run(["pdftotext", pdf, "-"], capture_output=True, text=True).stdout
    assert TITLE in " ".join(printed.split())
    record = json.loads((tree.trials(DATASET)[SERVER, 1] / "trial.json").read_text())
    assert record["version"] == "3 *stars* <i>\ufffd[31m"
    tree.snakemake("--report", "build/report.html", **failing).succeeded()
    report = (tree.path / "build/report.html").read_text()
    for words in (f"the dataset <em>{DATASET}</em>", "fig-measured-servers"):
        assert words in report, words
    assert_needs_no_network(tree.path / "build/report.html")
    # Git ignores what was measured and made, and no file of the study has changed.
    status = tree.run("git", "status", "--porcelain", "--untracked-files=all").succeeded().text
    assert [line for line in status.splitlines() if not line.startswith("A  ")] == []


def test_each_kind_of_server_passes_its_checks_as_it_stands(tree: Tree):
    kinds = [path.name for path in (tree.path / "servers" / "_template").iterdir()]
    parts = []
    for kind in kinds:
        tree.deathmatch("new-server", f"a-{kind}", "--kind", kind).succeeded()
        # Not in the tests' own network: a build may download.
        Tree(tree.path).deathmatch("build", f"a-{kind}").succeeded()
        parts += [
            f"[experiments.{name}]\nrates_rps = [1]\nduration_s = 1\n"
            f'[[experiments.{name}.grids]]\nservers = ["a-{kind}"]\n'
            for name in new_server.experiments(kind)
        ]
    tree.write("config/datasets/once.toml", 'title = "t"\ntrials = 1\nseed = 1\n' + "".join(parts))
    done = tree.sandboxed("python", "-c", CHECK, "server.log").succeeded()
    found = [json.loads(line) for line in done.text.splitlines()]
    assert {one["server"] for one in found} == {f"a-{kind}" for kind in new_server.KINDS}
    for one in found:
        assert one["wrong"] is None, one
        assert [check for check in one["checks"] if not check["ok"]] == [], one["log"]
        assert one["stop"] == {"on_sigterm": True, "killed": [], "left": []}


def test_the_servers_of_the_guide_are_right(tree: Tree):
    """Each file that servers/README.md shows, written where it says."""
    guide = (tree.path / "servers" / "README.md").read_text()
    shown = re.findall(r"^`(servers/\S+)`:\n\n```\w+\n(.*?)^```$", guide, re.M | re.S)
    assert len(shown) == 8
    for name, text in shown:
        tree.write(name, text)
    locked = ("deno", "fast", "zig")
    for name in locked:
        tree.write(f"servers/{name}/requirements.txt", "")
    for name in {name.split("/")[1] for name, _ in shown}:
        assert files.server(name, tree.path).build or name in locked


def test_the_advice_is_what_can_be_typed(tree: Tree):
    tree.environment["DEATHMATCH_SHELL"] = "./shell"
    text = tree.deathmatch("new-server", "one").succeeded().text
    for words in ("build one", "measure one"):
        assert f"\n  ./shell deathmatch {words}\n" in text
    assert "\n  ./shell snakemake --config dataset=smoke servers=one\n" in text
    tree.environment["DEATHMATCH_SHELL"] = ""
    command = "python3 -m http.server {port}"
    text = tree.deathmatch("new-server", "two", "--command", command).succeeded().text
    assert text.startswith(f"servers/two/ is there; it starts your command: {command}\n")
    assert "\n  deathmatch build two\n" in text
    for words, says in [
        (["three", "--kind=udp"], "there is no kind 'udp' of server\n  known: one-request, keep-"),
        (["Bad Name"], "new-server: 'Bad Name' cannot be the name of a server\n  use lower-case"),
    ]:
        with pytest.raises(UserError, match=re.escape(says)):
            command_line.main(["new-server", *words])
