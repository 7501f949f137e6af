"""A dataset in which nothing could be measured still has a paper, which says what and why."""

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from conftest import ROOT, Tree, copy_tree

from deathmatch.analysis import reply_rates, stats, views
from deathmatch.data import tables
from deathmatch.load import registry
from deathmatch.paper import display, notebook, own
from deathmatch.paper.display import MIME
from deathmatch.plan import files
from deathmatch.plan.dataset import TABLES
from deathmatch.run import study
from deathmatch.run.failures import UNMEASURED

# What the committed dataset measured is planted, and its notebooks are made.
EXPERIMENTS = set(files.dataset("reference").experiments)
NOTEBOOKS = sorted(
    path.stem
    for path in (ROOT / "notebooks").glob("*.md")
    if EXPERIMENTS & set(study.experiments_of(path)) and path.stem != own.NOTEBOOK
)
# Chapters about experiments; the others are about the whole dataset.
CHAPTERS = [name for name in NOTEBOOKS if name < "11" and name > "01"]
# What is known of a trial only once its server ran.
OF_THE_RUN = [
    "wall_us", "offering_us", "server_cpus", "client_cpus", "cpu", "cpus", "memory_bytes", "kernel",
    "os", "toolchain", "commit", "syscalls_per_reply", "waits_per_reply",
]  # fmt: skip
REASON = "cc: `x.c` has {no} @main\nand more"


def nothing_ran(frames: dict[str, pl.DataFrame], _: str) -> dict[str, pl.DataFrame]:
    """The tables as they are if no server could be measured: no trial has a point."""
    order = pl.int_range(pl.len()) % 3
    outcome = order.replace_strict(dict(enumerate(UNMEASURED)), return_dtype=pl.String)
    said = frames["trials"].sort("title").with_columns(outcome=outcome, reason=pl.lit(REASON))
    unbuilt = pl.col("outcome") == "not built"
    said = said.with_columns(pl.when(~unbuilt).then(pl.col(name)) for name in OF_THE_RUN)
    return {name: frame.clear() for name, frame in frames.items()} | {"trials": said}


def nothing_sound(frames: dict[str, pl.DataFrame], client: str | None) -> dict[str, pl.DataFrame]:
    """The tables as they are if the client failed at every point, in one of two ways."""
    if client is None:
        return nothing_ran(frames, client)
    points = frames["points"].with_columns(broken=pl.col("server").rank("dense") % 2 == 0)
    unknown = (
        pl.when(~pl.col("broken")).then(pl.col(name)).alias(name)
        for name in registry.generator(client).columns
    )
    report = pl.when("broken").then(pl.lit("truncated")).otherwise(pl.lit("whole"))
    # httperf's rate is the kernel's: a point without its report need not be limited.
    alone = pl.col("broken") & (client == "httperf")
    points = points.with_columns(*unknown, report=report, client_limited=~alone).drop("broken")
    return frames | {"points": points}


# A paper of each kind takes minutes; .ci/run makes both.
pytestmark = pytest.mark.once

KINDS = {each.__name__: each for each in (nothing_ran, nothing_sound)}


def plant(tree: Path, kind: str) -> None:
    """Write a dataset of that name: the committed one's first round, with nothing measured."""
    about = (ROOT / "config/datasets/reference.toml").read_text()
    # The copy has no other dataset's data, without which a paper is refused.
    about = re.sub(r"^(also|decided_by) = .*\n", "", about, flags=re.M)
    (tree / "config/datasets" / f"{kind}.toml").write_text(about)
    for experiment in EXPERIMENTS:
        frames = {
            name: tables.read("reference", experiment, name).filter(pl.col("n") == 1)
            for name in TABLES
        }
        folder = tree / "data" / kind / experiment
        folder.mkdir(parents=True)
        client = files.experiment(experiment).client
        for name, frame in KINDS[kind](frames, client).items():
            tables.write(frame, experiment, name, folder)


def shows_a_measured_value(chart: Path) -> bool:
    """Return whether a chart has a row that is not a source's own, with an outcome in it."""
    rows = [row for rows in json.loads(chart.read_text())["datasets"].values() for row in rows]
    ours = [row for row in rows if not row.get("_theirs")]
    return any(isinstance(value, float) for row in ours for value in row.values())


@pytest.fixture(scope="module", params=KINDS)
def papers(request, tmp_path_factory, network) -> tuple[Path, str]:
    """The folder of a planted dataset's paper, made by the study's own command, and its log."""
    tree = Tree(copy_tree(tmp_path_factory.mktemp(request.param) / "tree"), network)
    plant(tree.path, request.param)
    words = ["paper", "--keep-going", "--cores", "2"]
    done = tree.snakemake(*words, dataset=request.param)
    yield tree.path / "paper" / request.param, done.text
    shutil.rmtree(tree.path)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_chapter_holds_with_no_measured_point(papers, name):
    folder, log = papers
    made = folder / "notebooks" / f"{name}.ipynb"
    assert made.is_file(), log[-3000:]
    cells = json.loads(made.read_text())["cells"]
    prose = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    told = prose.count("**Nothing was measured.**")
    assert bool(told) == (name in CHAPTERS)
    if name in CHAPTERS:
        chosen = files.names("server")
        experiments = [each for each in files.names("experiment") if f"trials of *{each}*" in prose]
        assert len(experiments) == told
        for experiment in experiments:
            measured = tables.read("reference", experiment, "trials")["server"].unique().to_list()
            titles = {files.server(each).title for each in chosen if each in measured}
            assert [title for title in titles if title not in prose] == []


def test_the_paper_holds_with_no_measured_point(papers):
    folder, log = papers
    assert (folder / "deathmatch.pdf").is_file(), log[-3000:]
    html = (folder / "deathmatch.html").read_text()
    assert "Nothing was measured." in html and "a figure (left out)" in html
    dataset = folder.name
    why = {
        "nothing_ran": r"no point of <em>backlog</em> was measured",
        "nothing_sound": r"\d+ of \d+ points of <em>backlog</em> were limited by the client and",
    }
    # Without line breaks, which depend on the width.
    flat = " ".join(html.split())
    assert re.search(f"No figure: there is no point to draw: {why[dataset]}", flat)
    figures = folder.parent.parent / "figures" / dataset
    drawn = {path.stem for path in figures.glob("fig-*.svg")}
    report = folder.parent.parent / "build" / "report" / dataset
    assert {path.stem for path in report.glob("*.svg")} == drawn
    # The instruments have records of their own, and others' results are in git.
    others = {
        "fig-accept-wait", "fig-laws-little", "fig-readiness-flame", "fig-readiness-phases",
    }  # fmt: skip
    assert dataset == "nothing_sound" or drawn == others
    assert [label for label in drawn if not shows_a_measured_value(figures / f"{label}.json")] == []
    # In both datasets: a store has no client that could fail.
    assert "<code>cc: 'x.c' has (no) @main</code>" in html


def test_quantiles_of_no_histogram_have_their_types():
    kinds = {"label": pl.String, "time_us": pl.Int64, "count": pl.Int64}
    rows = [("a", 10, 980), ("a", 500, 20), ("b", 7, 100)]
    full = pl.DataFrame(rows, schema=kinds, orient="row")
    wanted = {"p50_us": 0.5, "p99_us": 0.99}
    found = stats.quantiles(full, ["label"], wanted)
    # Of a hundred, no 99th percentile can be told.
    assert found.rows() == [("a", 10, 500), ("b", 7, None)]
    lost = stats.quantiles(full, ["label"], wanted, {("a",): 10_000, ("b",): 100})
    assert lost.rows() == [("a", None, None), ("b", 7, None)]
    assert stats.quantiles(full.clear(), ["label"], wanted).schema == found.schema


def test_a_point_whose_report_breaks_off_does_not_show_its_server():
    made = views.Experiment("tiny", "backlog")
    kinds = {"client_limited": pl.Boolean, "report": pl.String, reply_rates.RATE: pl.Int64}
    rows = [(False, "whole", 1), (False, "truncated", 2), (True, "whole", 3)]
    made.__dict__["points"] = pl.DataFrame(rows, schema=kinds, orient="row")
    assert made.valid_points[reply_rates.RATE].to_list() == [1]
    made.__dict__["points"] = made.points.clear()
    assert made.top is None and made.no_plateau == ""


@pytest.mark.parametrize(
    "limited_points, report, said",
    [
        (2, "whole", "client-limited at 2 of 2 points."),
        (0, "truncated", "with a report of the load generator that breaks off at 2 of 2 points."),
    ],
)
def test_silence_says_why_no_point_shows_its_server(limited_points, report, said):
    made = views.Experiment("tiny", "backlog")
    made.__dict__["trials"] = pl.DataFrame({"title": ["A", "B"], "outcome": "measured",
                                            "reason": ""})  # fmt: skip
    points = pl.DataFrame({"title": ["A", "A"], "client_limited": limited_points > 0,
                           "report": report})  # fmt: skip
    made.__dict__["points"] = points
    assert f"- A: {said}\n- B: no rate was offered." in views.not_measured_note(made)
    both = pl.concat([points, points.with_columns(client_limited=False, report=pl.lit("whole"))])
    shown = views.Experiment("tiny", "backlog")
    shown.__dict__.update(trials=made.trials, points=both)
    assert views.not_measured_note(shown) == ""


def test_a_table_without_a_row_is_left_out(capsys):
    display.table(pl.DataFrame({"a": []}, schema={"a": pl.Int64}), label="tbl-a", caption="C.")
    assert "tbl-a: left out" in capsys.readouterr().out


def test_a_warning_does_not_hide_the_numbers_in_prose(tmp_path):
    source = tmp_path / "warns.md"
    source.write_text(
        "---\nkernelspec:\n  name: python3\n  display_name: Python 3\n---\n"
        '```{code-cell} ipython3\n:tags: [parameters]\ndataset = "quick"\nimport warnings\n```\n\n'
        "Text {eval}`warnings.warn('beware') or 41 + 1`.\n"
    )
    out = tmp_path / "out.ipynb"
    notebook.run(source, out, {"dataset": "quick"}, tmp_path)
    assert "Text 42." in out.read_text() and MIME not in out.read_text()
