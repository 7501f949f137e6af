r"""Make the two papers of a dataset from its executed notebooks, or from one of them a report.

    ./shell deathmatch paper --dataset quick --notebooks paper/quick/notebooks/*.ipynb \
        --out paper/quick [--figures figures/quick] [--front F.md] [--references F.bib]

writes `deathmatch.html` (one file, fetches nothing) and `deathmatch.pdf`, the same bytes each
time; from `00-findings.ipynb` alone `report.html` and `report.pdf`.

A notebook's sections of the first level are the narrative, one sentence a line, which comes first
in the paper, or an appendix, if the heading has the class `.appendix`. Code cells belong to the
appendix, which comes first in a notebook and folds in HTML.

Prose is pandoc Markdown: `[@walkin2009]` cites, `@fig-x`, `@tbl-x` and `@sec-x` refer,
`# Title {#sec-x}` names a section, `::: note` … `:::` sets a remark off,
`{value}`\`01-backlog.best\` recalls one of the `display.values` of any notebook, in front.md too,
`{show}`\`fig-x\`, alone on a line of the narrative, moves a figure or table there, and
`{chapter}`\`01-backlog\` in front.md says where a notebook's narrative stands.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pypandoc
import typst
from nbformat import NotebookNode

from deathmatch.analysis import phrases, provenance
from deathmatch.errors import UserError
from deathmatch.hosts import sandbox
from deathmatch.paper import markdown, report, scripts
from deathmatch.plan import paths
from deathmatch.plan.paths import ROOT

PAPER = ROOT / "paper" / "source"
# Titles and versions of other people's datasets may hold HTML or TeX, which must stay text.
MARKDOWN = "markdown-raw_html-raw_tex-raw_attribute-native_divs-native_spans"
TEXT_WIDTH_PT, TEXT_HEIGHT_PT = 440, 690


def build(
    notebooks: list[Path],
    dataset: str,
    out: Path,
    figures: Path,
    front: Path = PAPER / "front.md",
    references: Path = PAPER / "references.bib",
) -> tuple[Path, Path]:
    """Write the paper, `out`/deathmatch.html and .pdf, or of `report.NOTEBOOK` alone the report.

    Returns the paths of both. Raises UserError for an unknown citation, reference or value, a
    missing figure, a notebook never executed, and for a paper of data that lack a number or a
    figure that its text speaks of.
    """
    sources = [(path, markdown.load(path)) for path in notebooks]
    alone = [path.stem for path in notebooks] == [report.NOTEBOOK]
    values = {
        f"{path.stem}.{name}": text
        for path, notebook in sources
        for item in markdown.items_of(notebook)
        if item["kind"] == "values"
        for name, text in item["values"].items()
    }
    for path in (front, references):
        if not path.is_file():
            raise UserError("this file is missing", str(path), "the paper needs it")
    html_of: dict[str, str] = {}
    # It depends on all tables, and a notebook may run before some exist.
    usual = provenance.usual_testbed(dataset)
    narrative, full = {}, {}
    for path, notebook in sources:
        name = markdown.file_of(path, notebook)
        blocks = markdown.blocks_of(notebook, name, html_of, usual)
        narrative[name], full[name] = markdown.parted(blocks)
    if alone:
        labels = {label for blocks in full.values() for label, _ in blocks}
        narrative = {report.NAME: report.front(labels, values, dataset)}
    else:
        _check_whole(sources, values, dataset)
        narrative = {front.name: front.read_text(), **narrative}
        narrative = markdown.in_order(narrative, front.name)
    first, last = (
        {name: markdown.resolved(text, values, name) for name, text in texts.items()}
        for texts in markdown.placed(narrative, full)
    )
    if alone:
        last = {}
    else:
        first = {name: markdown.running(text) for name, text in first.items()}
    texts = {name: f"{first[name]}\n{last.get(name, '')}" for name in first}
    whole = markdown.joined(list(first.values()), list(last.values()))
    kind = report.NAME if alone else report.PAPER
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="deathmatch-") as scratch:
        work = Path(scratch)
        (work / f"{kind}.md").write_text(whole)
        (work / "own.json").write_text(json.dumps(html_of))
        (work / "head.html").write_text(f"<style>\n{(PAPER / 'style.css').read_text()}</style>\n")
        (work / "tail.html").write_text(_scripts())
        arguments = (kind, work, figures, dataset, references, texts)
        with ThreadPoolExecutor(1) as executor:
            html = executor.submit(_pandoc, "html", *arguments)
            _pandoc("typst", *arguments)
            _typeset(kind, work, figures)
            html.result()
        return tuple(_moved(work / f"{kind}.{suffix}", out) for suffix in ("html", "pdf"))


def _check_whole(
    sources: list[tuple[Path, NotebookNode]], values: dict[str, str], dataset: str
) -> None:
    """Raise UserError if the data lack what the paper's text speaks of."""
    lacks = [name for name, text in values.items() if phrases.NOT_MEASURED in text]
    for path, notebook in sources:
        lacks += [
            f"{path.stem}, {item['label']}"
            for item in markdown.items_of(notebook)
            if item["kind"] == "absent"
        ]
        lacks += [path.stem for cell in notebook.cells if phrases.NOT_MEASURED in cell.source]
    if lacks:
        raise UserError(
            f"the dataset {dataset} has no data for {len(lacks)} parts of the paper, the first: "
            f"{lacks[0]}",
            "notebooks/",
            f"paper/{dataset}/report.html shows what there is",
        )


def _scripts() -> str:
    own = "\n".join((PAPER / name).read_text() for name in ("contents.js", "night.js", "charts.js"))
    return f"<script>{scripts.vega()}</script>\n<script>\n{own}</script>\n"


def _pandoc(
    target: str,
    kind: str,
    work: Path,
    figures: Path,
    dataset: str,
    references: Path,
    texts: dict[str, str],
) -> None:
    template = "template.html" if target == "html" else "template.typ"
    command = [
        pypandoc.get_pandoc_path(), str(work / f"{kind}.md"), f"--from={MARKDOWN}",
        f"--to={target}", "--standalone", f"--template={PAPER / template}",
        f"--output={work / kind}.{target}", f"--lua-filter={PAPER / 'filter.lua'}",
        "--citeproc", f"--bibliography={references.resolve()}",
        "--metadata=link-citations:true", f"--metadata=figures:{figures}",
        f"--metadata=edition:Version {paths.version()}, dataset {dataset}",
        f"--metadata=text-width-pt:{TEXT_WIDTH_PT}", f"--metadata=text-height-pt:{TEXT_HEIGHT_PT}",
        f"--metadata=kind:{kind}",
    ]  # fmt: skip
    if target == "html":
        command += [
            "--toc", "--toc-depth=1", "--mathml", "--section-divs=false",
            f"--include-in-header={work / 'head.html'}",
            f"--include-after-body={work / 'tail.html'}",
        ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=work)
    _explain(done, texts)


def _explain(done: subprocess.CompletedProcess, texts: dict[str, str]) -> None:
    """Raise UserError, with the file that is wrong, for an error of pandoc or of the filter."""
    remedies = {
        "citation": "add it to paper/source/references.bib or correct the key",
        "unknown-reference": "label a figure or table so, or write # Title {#sec-…}",
        "duplicate-label": "give each figure, table and section its own label",
        "missing-figure": "run its notebook again: the chart's files are gone",
    }

    def where(what: str) -> str:
        return next((name for name, text in texts.items() if what in text), "")

    if citation := re.search(r"citation (\S+) not found", done.stderr):
        key = f"@{citation[1]}"
        raise UserError(f"unknown citation {key}", where(key), remedies["citation"])
    if complaint := re.search(r"deathmatch: (\S+) (\S+)", done.stderr):
        kind, label = complaint.groups()
        raise UserError(f"{kind.replace('-', ' ')} {label}", where(label), remedies[kind])
    if done.returncode:
        raise UserError(
            f"pandoc failed: {done.stderr.strip()}", "paper/source/filter.lua or a template"
        )


def _typeset(kind: str, work: Path, figures: Path) -> None:
    for chart in figures.glob("fig-*.pdf"):
        (work / chart.name).symlink_to(chart.resolve())
    source = (work / f"{kind}.typst").rename(work / f"{kind}.typ")
    try:
        typst.compile(
            source,
            output=work / f"{kind}.pdf",
            root=work,
            ignore_system_fonts=True,
            timestamp=int(os.environ.get("SOURCE_DATE_EPOCH", "0")),
        )
    except typst.TypstError as error:
        raise UserError(f"typst failed: {error}", "paper/source/template.typ or a table") from None


def _moved(made: Path, out: Path) -> Path:
    aside = out / f".{made.name}.part"
    aside.write_bytes(made.read_bytes())
    return aside.replace(out / made.name)


def main(given: argparse.Namespace) -> int:
    """Build both papers and print their paths."""
    sandbox.die_with_owner()
    paths.check_dataset(given.dataset, "--dataset")
    figures = (given.figures or ROOT / "figures" / given.dataset).resolve()
    made = build(given.notebooks, given.dataset, given.out, figures, given.front, given.references)
    print(*made, sep="\n")
    return 0
