"""Notebooks as texts: the prose names numbers that a cell above computes."""

import ast
import re
import subprocess
import sys
from itertools import zip_longest

import jupytext
import nbformat
import pytest
from conftest import ROOT

from deathmatch.analysis import judging
from deathmatch.paper import markdown
from deathmatch.paper.notebook import EVAL
from deathmatch.run import study

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.md"))
LONGEST = 80
# A name, an attribute or an item of it, or a call that formats one.
SIMPLE = (
    ast.Expression, ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.keyword, ast.Constant,
    ast.UnaryOp, ast.USub, ast.Tuple, ast.Load,
)  # fmt: skip


def expressions(text: str) -> list[str]:
    """Return the expressions in the prose of a notebook."""
    cells = jupytext.reads(text, "md:myst").cells
    return [
        expression
        for cell in cells
        if cell.cell_type == "markdown"
        for expression in EVAL.findall(cell.source)
    ]


def is_simple(expression: str) -> bool:
    """Return whether an expression only names a value, or formats one."""
    parts = ast.walk(ast.parse(expression, mode="eval"))
    return len(expression) <= LONGEST and all(isinstance(part, SIMPLE) for part in parts)


def unknown_names(text: str) -> list[str]:
    """Return what ruff says of names that are used before they are bound, or not at all."""
    lines = []
    for cell in jupytext.reads(text, "md:myst").cells:
        if cell.cell_type == "markdown":
            lines += [f"print({expression})" for expression in EVAL.findall(cell.source)]
        else:
            lines.append(cell.source)
    command = [
        sys.executable, "-m", "ruff", "check", "--isolated", "--select=F",
        "--output-format=concise", "-",
    ]  # fmt: skip
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True)
    return re.findall(r"^-:.*", done.stdout, re.M)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_prose_names_what_a_cell_computes_before(path):
    text = path.read_text()
    assert [each for each in expressions(text) if not is_simple(each)] == []
    assert unknown_names(text) == []
    assert f"{{value}}`{path.stem}." not in text, "only values of other notebooks are recalled"


def differs(source: str, executed: str) -> list[str]:
    """Return the cells of a notebook that an executed one has not, but for what text computes."""
    given, made = jupytext.reads(source, fmt="md:myst"), nbformat.reads(executed, 4)
    cells = [one for one in made.cells if "injected-parameters" not in one.metadata.get("tags", [])]
    missing = []
    for one, other in zip_longest(given.cells, cells):
        words = "" if one is None else re.escape(EVAL.sub("@computed@", one.source))
        pattern = words.replace(re.escape("@computed@"), ".*?")
        if other is None or not re.fullmatch(pattern, other.source, re.DOTALL):
            missing.append(one.source if one else other.source)
    return missing


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_committed_paper_is_of_the_notebooks_as_they_are(path):
    source = path.read_text()
    executed = (ROOT / "paper/reference/notebooks" / f"{path.stem}.ipynb").read_text()
    assert differs(source, executed) == [], "make the paper again: ./shell snakemake paper"


VERDICT_WORDS = re.compile(
    r"\b((?:not )?replicated|not run|inconclusive|refuted|confirmed|disproved|condition not reached"
    r"|the reverse|here it is(?: not)?|as \w+ found|was (?:right|wrong))\b",
    re.IGNORECASE,
)
OF_LEDGER = re.compile(r"\{value\}`20-claims\.(\w+)`")


COUNT_OF = re.compile("^(?:of_time|oldest|(?:others_)?(?:now|then))_")
VALUE = re.compile(r"\{(?:value|eval)\}`[^`]*`")


def narrative(text: str) -> list[str]:
    """Return the sentences of a notebook's prose that stand in the paper's narrative."""
    _, *sections = re.split(r"^# ", re.sub(r"```.*?```", "", text, flags=re.S), flags=re.M)
    mine = [section for section in sections if ".appendix}" not in section.splitlines()[0]]
    return sentences("\n\n".join(mine))


def sentences(text: str) -> list[str]:
    """Return the sentences of a text's paragraphs, each as one line."""
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]
    return [line for part in paragraphs for line in re.split(r"(?<=[.!?]) (?=[A-Z{*\[])", part)]


def undecided_sentences(lines: list[str]) -> list[str]:
    """Return the sentences with a typed verdict that differs from the values which they recall.

    A verdict on a claim is recalled and never typed; a count says by its name of which verdict.
    """
    wrong = []
    for line in lines:
        recalled = OF_LEDGER.findall(line)
        typed = {word.lower() for word in VERDICT_WORDS.findall(VALUE.sub("", line))}
        counts = {COUNT_OF.sub("", name).replace("_", " ") for name in recalled}
        if typed - counts:
            wrong.append(line)
    return wrong


def unknown_verdicts(lines: list[str]) -> list[str]:
    """Return recalled values of the ledger that are no count or ratio of it."""
    ratios = {"node_over_tornado", "cowboy_over_mochiweb",
              "mochiweb_over_node", "tail_over_mean", "handshakes_spread",
              "timed_out_at_pace", "passive_over_active", "native_over_interpreted",
              "production_over_bare", "old_tornado_over_yucan", "tornado_over_yucan",
              "epoll_over_select",
              "williams", "walkin", "day", "ostinelli", "moritz"}  # fmt: skip
    counts = re.compile("(of_time|oldest|others|now|then)_|claims|results|within_years")
    named = [name for line in lines for name in OF_LEDGER.findall(line)]
    recalled = [name for name in named if name not in ratios]
    words = {word.replace(" ", "_") for word in judging.VERDICTS}
    return [
        name
        for name in recalled
        if not (counts.match(name) and (name.isalpha() or name.endswith(tuple(words))))
    ]


def narratives() -> list[str]:
    """Return the sentences of the abstract, of the opening sections and of all narratives."""
    _, front = (ROOT / "paper" / "source" / "front.md").read_text().split("abstract: |")
    return sentences(front) + [line for path in NOTEBOOKS for line in narrative(path.read_text())]


def test_every_verdict_of_the_narrative_is_the_ledgers():
    lines = narratives()
    assert undecided_sentences(lines) == []
    assert unknown_verdicts(lines) == []


MOST_IN_ABSTRACT = 6
NUMBER = re.compile(r"\d+(?:[,\u202f ]\d{3}\b)*(?:\.\d+)?")


def test_the_first_page_has_few_numbers_a_sentence_for_each_post_and_the_findings_that_stand():
    executed = sorted((ROOT / "paper" / "reference" / "notebooks").glob("*.ipynb"))
    values = {
        f"{path.stem}.{name}": text
        for path in executed
        for item in markdown.items_of(markdown.load(path))
        if item["kind"] == "values"
        for name, text in item["values"].items()
    }
    _, abstract, body = (ROOT / "paper" / "source" / "front.md").read_text().split("---\n")
    abstract = abstract.partition("abstract: |")[2]
    numbers = NUMBER.findall(markdown.resolved(abstract, values, "front.md"))
    assert 0 < len(numbers) <= MOST_IN_ABSTRACT, numbers
    opening = re.split(r"^# ", body, flags=re.M)[0]
    page = markdown.VALUE.sub(lambda role: values[role[1]], opening)
    posts = re.findall(r"^- (.*)", page, re.M)
    assert len(posts) == 5 and all(
        re.search(r"\*\*[a-z ]+\*\*; of \d+ results", line) for line in posts
    )
    answers = re.findall(r"^1\. (.*)", page, re.M)
    assert 1 <= len(answers) <= 9 and "fragile" not in "".join(answers)
    assert [len(re.findall(r"\*\*[^*]+\*\*", answer)) for answer in answers] == [1] * len(answers)
    assert all(re.search(r"\(@sec-[a-z0-9-]+\)\.$", answer) for answer in answers)
    assert page.index(answers[-1]) < page.index("{show}`fig-findings`")


@pytest.mark.parametrize("source", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_that_reads_a_ledger_waits_for_it(source):
    """A notebook that does not declare the ledger would compute it a second time in a run."""
    text = source.read_text()
    reads = "claims.ledger(" in text or "claims.findings_of(" in text
    assert study.reads_ledger(source) is reads
