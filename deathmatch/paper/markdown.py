"""From executed notebooks to the Markdown of a paper: blocks, narrative, appendices, values."""

import re
from pathlib import Path

import nbformat

from deathmatch.analysis import provenance
from deathmatch.analysis.provenance import Testbed
from deathmatch.errors import UserError
from deathmatch.paper import titles
from deathmatch.paper.display import MIME

VALUE = re.compile(r"\{value\}`([^`]+)`")
SHOW = re.compile(r"^\{show\}`([^`]+)`[ ]*$", re.M)
CHAPTER_HERE = re.compile(r"^\{chapter\}`([^`]+)`[ ]*\n?", re.M)
APPENDIX = re.compile(r"# .*\{[^}\n]*\.appendix[ }]")
CHAPTER = re.compile(r"^(?=# )", re.M)
DIVIDER = """::: {.appendices}
# Appendices {#sec-appendices .unnumbered}

Every table, every variant and the method in full.
:::"""
# A number with its unit, as `analysis.phrases.interval` writes it with its interval and trials.
ESTIMATE = re.compile(
    r"(?P<number>\d[\d\u202f.]*(?:[\u202f ][^\s()]+)?)"
    r" \((?P<interval>(?:interval [^()]+, )?n = \d+)\)"
)
ROLE = re.compile(r"\{([a-z][\w:-]*)\}`[^`]*`|^```+\{([a-z][\w-]*)\}", re.M)

# Each block of a notebook: its kind, or the label of its figure or table, and its Markdown.
Blocks = list[tuple[str, str]]


def load(path: Path) -> nbformat.NotebookNode:
    """Return an executed notebook; UserError if there is none."""
    if not path.is_file():
        raise UserError(
            "there is no such notebook", str(path), "make it: ./shell deathmatch notebook"
        )
    return nbformat.read(path, as_version=4)


def file_of(path: Path, notebook: nbformat.NotebookNode) -> str:
    """Return the file in notebooks/ that it was run from; UserError if it was not run by us."""
    about = notebook.metadata.get("deathmatch")
    if not about:
        raise UserError(
            "this notebook was not run by deathmatch.paper.notebook", str(path), "run it with that"
        )
    return about["notebook"]


def _outputs(cell: nbformat.NotebookNode) -> list[tuple[str, dict | str]]:
    """Return a cell's outputs as (MIME type, content): of each the type that the paper prefers."""
    outputs = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream" and output.name == "stdout":
            outputs.append(("text/plain", output.text))
        elif "data" in output:
            kinds = (MIME, "text/markdown", "text/plain")
            kind = next((k for k in kinds if k in output.data), None)
            if kind:
                outputs.append((kind, output.data[kind]))
    return outputs


def items_of(notebook: nbformat.NotebookNode) -> list[dict]:
    """Return what a notebook displayed by `paper.display`, in order."""
    pairs = [pair for cell in notebook.cells for pair in _outputs(cell)]
    return [content for kind, content in pairs if kind == MIME]


def blocks_of(
    notebook: nbformat.NotebookNode, name: str, own: dict[str, str], usual: Testbed | None
) -> Blocks:
    """Return the notebook as (kind, Markdown): "prose", "code", "output", or a figure's label.

    The study's own HTML is added to `own`, by its name in the Markdown. `usual` is the
    testbed of which a caption says nothing.
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
            blocks.append((label, _block(kind, content, name, own, usual)))
    return [(kind, text) for kind, text in blocks if text]


def parted(blocks: Blocks) -> tuple[str, Blocks]:
    """Return a notebook's narrative, and the blocks of its appendix.

    Each section of the first level belongs to the one or the other, by the class `.appendix` of its
    heading; all code belongs to the appendix. Without an appendix all is narrative.
    """
    narrative: list[str] = []
    title: Blocks = []
    code_before: Blocks = []
    rest: Blocks = []
    in_appendix = False
    for kind, text in blocks:
        for part in CHAPTER.split(text) if kind == "prose" else [text]:
            if kind == "prose" and part.startswith("# "):
                in_appendix = bool(APPENDIX.match(part))
                if in_appendix and not title:
                    heading, _, part = part.partition("\n")
                    title = [("prose", heading)]
            part = part.strip() if kind == "prose" else part
            if in_appendix:
                rest.append((kind, part))
            elif kind == "code":
                (rest if title else code_before).append((kind, part))
            else:
                narrative.append(part)
    if not title:
        return "\n\n".join(text for _, text in blocks), []
    appendix = [*title, *code_before, *rest]
    return "\n\n".join(filter(None, narrative)), [block for block in appendix if block[1]]


def in_order(narratives: dict[str, str], front: str) -> dict[str, str]:
    """Return narratives by file in the order of the front's `{chapter}` roles, the front first.

    A front without such roles leaves them as they are. Raises UserError for a chapter that is no
    notebook's, and for a notebook whose narrative the front does not name.
    """
    named = CHAPTER_HERE.findall(narratives[front])
    if not named:
        return narratives
    by_stem = {Path(name).stem: name for name, text in narratives.items() if text and name != front}
    for stem in sorted({*named} ^ {*by_stem}):
        raise UserError(
            f"there is no chapter {stem}" if stem in named else f"no chapter is {stem}",
            front,
            "{chapter} roles name each notebook with a narrative once",
        )
    opening = CHAPTER_HERE.sub("", narratives[front])
    ordered = {front: opening} | {by_stem[stem]: narratives[by_stem[stem]] for stem in named}
    return ordered | {name: "" for name in narratives if name not in ordered}


def placed(
    narratives: dict[str, str], appendices: dict[str, Blocks]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return narratives, the front's first, and appendices, with each `{show}` replaced.

    The figure or table that a `{show}` names moves there from its appendix. Raises UserError for a
    label that no notebook has.
    """
    made = {label: text for blocks in appendices.values() for label, text in blocks if "-" in label}
    moved = {label for text in narratives.values() for label in SHOW.findall(text)}

    def show(text: str, name: str) -> str:
        for label in set(SHOW.findall(text)) - set(made):
            raise UserError(
                f"there is no figure or table {label!r} to show", name,
                f"an appendix makes: {', '.join(sorted(made)) or 'none'}",
            )  # fmt: skip
        return SHOW.sub(lambda role: made[role[1]], text)

    filled_narratives = {name: show(text, name) for name, text in narratives.items()}
    left_appendices = {
        name: "\n\n".join(text for label, text in blocks if label not in moved)
        for name, blocks in appendices.items()
    }
    return filled_narratives, left_appendices


def _block(
    kind: str, content: dict | str, name: str, own: dict[str, str], usual: Testbed | None
) -> str:
    if kind == "text/markdown":
        return content
    if kind == "text/plain":
        return _fenced(content.rstrip("\n"), "output") if content.strip() else ""
    if content["kind"] not in ("figure", "table"):
        return ""
    origin = ", ".join([name, *content["source"]])
    attributes = f"#{content['label']} .{content['kind']} source={_quoted(origin)}"
    body = content["caption"]
    if content["kind"] == "figure":
        attributes += f" alt={_quoted(content['alt'])}"
        differs = provenance.difference(usual, content["source"])
        attributes += f" differs={_quoted(differs)}"
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


def resolved(text: str, values: dict[str, str], name: str) -> str:
    """Fill in {value} roles; UserError for an unknown name or a role the paper does not know."""

    def fill(role: re.Match) -> str:
        if role[1] not in values:
            known = ", ".join(sorted(values)) or "none"
            raise UserError(
                f"there is no value {role[1]!r}", name, f"display.values makes one; known: {known}"
            )
        return titles.escaped(values[role[1]])

    # Titles first, as one may look like a role.
    text = VALUE.sub(fill, titles.escaped(text))
    if left := ROLE.search(text):
        role = left[1] or left[2]
        raise UserError(
            f"{left[0]} is not understood", name,
            "run the notebook with deathmatch.paper.notebook" if role == "eval"
            else "write [@key] to cite, @fig-x to refer, ::: note for a remark",
        )  # fmt: skip
    return text


def running(text: str) -> str:
    """Return a narrative with its numbers alone: pointing at one shows interval and trials.

    On paper, the figure or the table that a sentence names has them.
    """
    return ESTIMATE.sub(r'[\g<number>]{.estimate title="\g<interval>" tabindex="0"}', text)


def joined(narrative: list[str], appendices: list[str]) -> str:
    """Return the paper in Markdown: narrative, appendices, references."""
    divider = [DIVIDER] if any(appendices) else []
    end = "# References {.unnumbered}\n\n::: {#refs}\n:::\n"
    return "\n\n".join([*filter(None, narrative), *divider, *filter(None, appendices), end])
