r"""Make the two papers of a dataset from its executed notebooks.

    ./shell deathmatch paper --dataset quick --notebooks paper/quick/notebooks/*.ipynb \
        --out paper/quick [--figures figures/quick] [--front F.md] [--references F.bib]

writes `deathmatch.html` (one file, fetches nothing) and `deathmatch.pdf`, the same bytes each
time. Input: `paper/source/front.md` (YAML title and abstract, then opening sections), the notebooks
in the order given, `figures/<dataset>/`, `paper/source/references.bib`.

The narrative comes first: what a notebook says before its first heading with the class `.appendix`,
one sentence a line. What follows that heading is an appendix, and so are the notebook's code cells.
In HTML an appendix folds.

Prose is pandoc Markdown: `[@walkin2009]` cites, `@fig-x`, `@tbl-x` and `@sec-x` refer,
`# Title {#sec-x}` names a section, `::: note` … `:::` sets a remark off,
`{value}`\`01-backlog.best\` recalls a `display.value` of any notebook, in front.md too, and
`{show}`\`fig-x\`, alone on a line of the narrative, moves a figure or table there.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import nbformat
import pypandoc
import typst

from deathmatch.analysis import phrases
from deathmatch.errors import UserError
from deathmatch.hosts import sandbox
from deathmatch.paper import scripts
from deathmatch.paper.display import MIME
from deathmatch.plan import places
from deathmatch.plan.root import ROOT

PAPER = ROOT / "paper" / "source"
CHAPTERS = ROOT / "notebooks"
VALUE = re.compile(r"\{value\}`([^`]+)`")
SHOW = re.compile(r"^\{show\}`([^`]+)`[ ]*$", re.M)
APPENDIX = re.compile(r"^# .*\{[^}\n]*\.appendix[ }].*$", re.M)
DIVIDER = """::: {.appendices}
# Appendices {#sec-appendices .unnumbered}

Every table, every variant and the method in full.
:::"""
# A title or a version in another's dataset may hold what Markdown would pass on as it is.
MARKDOWN = "markdown-raw_html-raw_tex-raw_attribute-native_divs-native_spans"
LEDGER = re.compile(
    r'```\{=html\}\n(<script type="application/json" class="ledger">[^\n]*</script>)\n```\s*'
)
ROLE = re.compile(r"\{([a-z][\w:-]*)\}`[^`]*`|^```+\{([a-z][\w-]*)\}", re.M)
TEXT_WIDTH_PT, TEXT_HEIGHT_PT = 440, 690


def build(
    notebooks: list[Path],
    dataset: str,
    out: Path,
    figures: Path,
    front: Path = PAPER / "front.md",
    references: Path = PAPER / "references.bib",
) -> tuple[Path, Path]:
    """Write `out`/deathmatch.html and `out`/deathmatch.pdf and return their paths.

    Raises UserError for an unknown citation, reference or value, a missing figure, or a notebook
    never executed.
    """
    sources = [(path, _load(path)) for path in notebooks]
    values = {
        f"{path.stem}.{item['name']}": item["text"]
        for path, notebook in sources
        for item in _items(notebook)
        if item["kind"] == "value"
    }
    for path in (front, references):
        if not path.is_file():
            raise UserError("this file is missing", str(path), "the paper needs it")
    chapters = {path.stem: path.read_text() for path in sorted(CHAPTERS.glob("*.md"))}
    absent = set(chapters) - {path.stem for path, _ in sources}
    missing = elsewhere(chapters, absent) | {
        item["label"]: _left_out(item["label"], "left out")
        for _, notebook in sources
        for item in _items(notebook)
        if item["kind"] == "absent"
    }
    told, full = {front.name: without(front.read_text(), absent, values)}, {}
    # What the study itself writes in HTML, by name.
    own: dict[str, str] = {}
    for path, notebook in sources:
        name = _name(path, notebook)
        text, full[name] = parted(_blocks(notebook, name, own))
        told[name] = answered(without(text, absent, values)) if full[name] else text
    first, last = (
        {name: _resolved(text, values, name) for name, text in each.items()}
        for each in placed(told, full, set(missing))
    )
    texts = {name: f"{first[name]}\n{last.get(name, '')}" for name in first}
    whole = _joined(list(first.values()), list(last.values()))
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="deathmatch-") as scratch:
        work = Path(scratch)
        (work / "deathmatch.md").write_text(whole)
        (work / "elsewhere.json").write_text(json.dumps({"elsewhere": missing}))
        (work / "own.json").write_text(json.dumps(own))
        (work / "head.html").write_text(f"<style>\n{(PAPER / 'style.css').read_text()}</style>\n")
        (work / "tail.html").write_text(_scripts())
        for target in ("html", "typst"):
            _pandoc(target, work, figures, dataset, references, texts)
        _typeset(work, figures)
        return tuple(_moved(work / f"deathmatch.{kind}", out) for kind in ("html", "pdf"))


def _joined(narrative: list[str], appendices: list[str]) -> str:
    """Return the paper in Markdown: narrative, appendices, references."""
    divider = [DIVIDER] if any(appendices) else []
    end = "# References {.unnumbered}\n\n::: {#refs}\n:::\n"
    return "\n\n".join([*filter(None, narrative), *divider, *filter(None, appendices), end])


def _scripts() -> str:
    own = "\n".join((PAPER / name).read_text() for name in ("night.js", "charts.js", "ledger.js"))
    return f"<script>{scripts.vega()}</script>\n<script>\n{own}</script>\n"


def _load(path: Path) -> nbformat.NotebookNode:
    if not path.is_file():
        raise UserError(
            "there is no such notebook", str(path), "make it: ./shell deathmatch notebook"
        )
    return nbformat.read(path, as_version=4)


def _name(path: Path, notebook: nbformat.NotebookNode) -> str:
    about = notebook.metadata.get("deathmatch")
    if not about:
        raise UserError(
            "this notebook was not run by deathmatch.paper.notebook", str(path), "run it with that"
        )
    return about["notebook"]


def _outputs(cell: nbformat.NotebookNode) -> list[tuple[str, dict | str]]:
    """Return a cell's outputs as (MIME type, content), the one the paper prefers of each."""
    found = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream" and output.name == "stdout":
            found.append(("text/plain", output.text))
        elif "data" in output:
            kinds = (MIME, "text/markdown", "text/plain")
            kind = next((k for k in kinds if k in output.data), None)
            if kind:
                found.append((kind, output.data[kind]))
    return found


def _items(notebook: nbformat.NotebookNode) -> list[dict]:
    pairs = [pair for cell in notebook.cells for pair in _outputs(cell)]
    return [content for kind, content in pairs if kind == MIME]


def _blocks(
    notebook: nbformat.NotebookNode, name: str, own: dict[str, str]
) -> list[tuple[str, str]]:
    """Return the notebook as (kind, Markdown): "prose", "code", "output", or a figure's label.

    What is HTML of ours goes into `own`, by its name in the Markdown.
    """
    blocks = []
    for cell in notebook.cells:
        tags = set(cell.metadata.get("tags", []))
        if "remove-cell" in tags:
            continue
        if cell.cell_type == "markdown":
            blocks.append(("prose", cell.source))
            continue
        if cell.source.strip() and not tags & {"parameters", "injected-parameters", "remove-input"}:
            fenced = _fenced(cell.source, "python")
            blocks.append(("code", f"::::: {{.code}}\n{fenced}\n:::::"))
        for kind, content in _outputs(cell):
            label = content["label"] if kind == MIME and "label" in content else "output"
            blocks.append((label, _block(kind, content, name, own)))
    return [(kind, text) for kind, text in blocks if text]


Blocks = list[tuple[str, str]]


def parted(blocks: Blocks) -> tuple[str, Blocks]:
    """Return a notebook's narrative, and the blocks of its appendix.

    Without a heading of the class `.appendix` all is narrative.
    """
    told, kept, rest, found = [], [], [], False
    for kind, text in blocks:
        heading = APPENDIX.search(text) if kind == "prose" and not found else None
        if heading:
            before, found = text[: heading.start()].strip(), True
            told += [before] if before else []
            title, _, under = text[heading.start() :].partition("\n")
            rest += [("prose", title), *kept, ("prose", under.strip())]
        elif found:
            rest.append((kind, text))
        elif kind == "code":
            kept.append((kind, text))
        else:
            told.append(text)
    if not found:
        return "\n\n".join(text for _, text in blocks), []
    return "\n\n".join(told), [(kind, text) for kind, text in rest if text]


def placed(
    told: dict[str, str], full: dict[str, Blocks], missing: set[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return narratives and appendices with each `{show}` replaced by what it names.

    That is taken out of its appendix. A line that shows what the dataset does not fill (`missing`)
    is left out; UserError for a label that no notebook has.
    """
    made = {label: text for blocks in full.values() for label, text in blocks if "-" in label}
    taken = {label for text in told.values() for label in SHOW.findall(text)}

    def show(text: str, name: str) -> str:
        for label in set(SHOW.findall(text)) - set(made) - missing:
            raise UserError(
                f"there is no figure or table {label!r} to show", name,
                f"an appendix makes: {', '.join(sorted(made)) or 'none'}",
            )  # fmt: skip
        # Others float to the top or foot of a page; these stand where the narrative shows them.
        found = SHOW.sub(lambda role: made.get(role[1], ""), text)
        return found.replace(" .figure ", " .figure .here ")

    first = {name: show(text, name) for name, text in told.items()}
    last = {
        name: "\n\n".join(text for label, text in blocks if label not in taken)
        for name, blocks in full.items()
    }
    return first, last


def answered(text: str) -> str:
    """Return a narrative, which says so if nothing of it was measured."""
    title, _, body = text.partition("\n")
    if not title.startswith("# ") or body.strip():
        return text
    return f"{title}\n\nThis dataset holds no answer."


def _block(kind: str, content: dict | str, name: str, own: dict[str, str]) -> str:
    if kind == "text/markdown":
        if not (ledger := LEDGER.fullmatch(content)):
            return content
        own[f"ledger-{len(own)}"] = ledger[1]
        return f'::: {{.own name="{list(own)[-1]}"}}\n:::'
    if kind == "text/plain":
        return _fenced(content.rstrip("\n"), "output") if content.strip() else ""
    if content["kind"] == "absent":
        return f"::: note\n{content['text']}\n:::"
    if content["kind"] not in ("figure", "table"):
        return ""
    origin = ", ".join([name, *content["source"]])
    attributes = f"#{content['label']} .{content['kind']} source={_quoted(origin)}"
    body = content["caption"]
    if content["kind"] == "figure":
        attributes += f" alt={_quoted(content['alt'])}"
        attributes += f" measured={_quoted(content.get('measured', ''))}"
    else:
        own[content["label"]] = content["html"]
    return f"::::: {{{attributes}}}\n{body}\n:::::"


def _fenced(text: str, language: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence} {{.{language}}}\n{text}\n{fence}"


def _quoted(text: str) -> str:
    flat = " ".join(text.split())
    return '"' + flat.replace("\\", "\\\\").replace('"', '\\"') + '"'


def without(text: str, absent: set[str], values: dict[str, str]) -> str:
    """Return the text without the lines that tell values of what was not measured.

    A dataset need not hold every experiment, nor all of one; so front.md and the narrative have a
    sentence a line. `absent` are the chapters that are not there.
    """

    def measured(name: str) -> bool:
        return name.split(".")[0] not in absent and phrases.NOT_MEASURED not in values.get(name, "")

    lines = text.splitlines(keepends=True)
    return "".join(
        line for line in lines
        if all(map(measured, VALUE.findall(line))) and phrases.NOT_MEASURED not in line
    )  # fmt: skip


def elsewhere(chapters: dict[str, str], absent: set[str]) -> dict[str, str]:
    """Return what to write for references to what the dataset does not fill.

    That is everything in a chapter that is not there, and a figure or table of another that its
    notebook left out.
    """
    found = {}
    for name, text in chapters.items():
        title = re.search(r"^# (.+?) *\{#", text, re.MULTILINE)
        chapter = f"the chapter “{title[1]}”" if title else "another chapter"
        for section, label in re.findall(r"\{#(sec-[\w-]+)[ }]|\"((?:fig|tbl)-[\w-]+)\"", text):
            if name in absent:
                found[section or label] = f"{chapter} (not in this dataset)"
            elif label:
                found[label] = _left_out(label)
    return found


def _left_out(label: str, why: str = "not in this dataset") -> str:
    what = "a figure" if label.startswith("fig-") else "a table"
    return f"{what} ({why})"


def _resolved(text: str, values: dict[str, str], name: str) -> str:
    """Fill in {value} roles; UserError for an unknown name or a role the paper does not know."""

    def fill(role: re.Match) -> str:
        if role[1] not in values:
            known = ", ".join(sorted(values)) or "none"
            raise UserError(
                f"there is no value {role[1]!r}", name, f"display.value makes one; known: {known}"
            )
        return values[role[1]]

    text = VALUE.sub(fill, text)
    if left := ROLE.search(text):
        role = left[1] or left[2]
        raise UserError(
            f"{left[0]} is not understood", name,
            "run the notebook with deathmatch.paper.notebook" if role == "eval"
            else "write [@key] to cite, @fig-x to refer, ::: note for a remark",
        )  # fmt: skip
    return text


def _pandoc(
    target: str, work: Path, figures: Path, dataset: str, references: Path, texts: dict[str, str]
) -> None:
    template = {"html": "template.html", "typst": "template.typ"}[target]
    command = [
        pypandoc.get_pandoc_path(), str(work / "deathmatch.md"), f"--from={MARKDOWN}",
        f"--to={target}", "--standalone", f"--template={PAPER / template}",
        f"--output={work / ('deathmatch.' + target)}", f"--lua-filter={PAPER / 'filter.lua'}",
        "--citeproc", f"--bibliography={references.resolve()}",
        "--metadata=link-citations:true", f"--metadata=figures:{figures}",
        f"--metadata=edition:Dataset: {dataset}", f"--metadata=text-width-pt:{TEXT_WIDTH_PT}",
        f"--metadata=text-height-pt:{TEXT_HEIGHT_PT}",
        f"--metadata-file={work / 'elsewhere.json'}",
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
    """Turn pandoc's and the filter's complaints into one sentence with a place."""
    remedies = {
        "citation": "add it to paper/source/references.bib or correct the key",
        "unknown-reference": "label a figure or table so, or write # Title {#sec-…}",
        "duplicate-label": "give each figure, table and section its own label",
        "missing-figure": "run its notebook again: the chart's files are gone",
    }

    def where(what: str) -> str:
        return next((name for name, text in texts.items() if what in text), "")

    if found := re.search(r"citation (\S+) not found", done.stderr):
        key = f"@{found[1]}"
        raise UserError(f"unknown citation {key}", where(key), remedies["citation"])
    if found := re.search(r"deathmatch: (\S+) (\S+)", done.stderr):
        raise UserError(
            f"{found[1].replace('-', ' ')} {found[2]}", where(found[2]), remedies[found[1]]
        )
    if done.returncode:
        raise UserError(
            f"pandoc failed: {done.stderr.strip()}", "paper/source/filter.lua or a template"
        )


def _typeset(work: Path, figures: Path) -> None:
    for chart in figures.glob("fig-*.pdf"):
        (work / chart.name).symlink_to(chart.resolve())
    source = (work / "deathmatch.typst").rename(work / "deathmatch.typ")
    try:
        typst.compile(
            source,
            output=work / "deathmatch.pdf",
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
    places.check_dataset(given.dataset, "--dataset")
    figures = (given.figures or ROOT / "figures" / given.dataset).resolve()
    made = build(given.notebooks, given.dataset, given.out, figures, given.front, given.references)
    print(*made, sep="\n")
    return 0
