"""Notebooks as texts: a number stands in the prose by a short name that a cell above computes."""

import ast
import re
import subprocess
import sys

import jupytext
import pytest
from conftest import ROOT

from deathmatch.paper.notebook import EVAL

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.md"))
LONGEST = 80
# A name, an attribute or an item of it, or a call that formats one.
SIMPLE = (
    ast.Expression, ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.keyword, ast.Constant,
    ast.UnaryOp, ast.USub, ast.Tuple, ast.Load,
)  # fmt: skip


def expressions(text: str) -> list[str]:
    """Return what the prose of a notebook evaluates."""
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
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--select=F",
        "--output-format=concise",
        "-",
    ]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True)
    return re.findall(r"^-:.*", done.stdout, re.M)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_prose_names_what_a_cell_computes(path):
    assert [text for text in expressions(path.read_text()) if not is_simple(text)] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_name_is_used_before_it_is_bound(path):
    assert unknown_names(path.read_text()) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_only_values_of_other_notebooks_are_recalled(path):
    assert f"{{value}}`{path.stem}." not in path.read_text()


PLANTED = """---
kernelspec:
  name: python3
  display_name: Python 3
---

It is {eval}`rate`.

```{code-cell} ipython3
rate = 5
```

It is {eval}`rate`, {eval}`"few" if rate < 9 else "many"`.
"""


def test_a_planted_fault_is_found():
    first, second, third = expressions(PLANTED)
    assert (is_simple(first), is_simple(second), is_simple(third)) == (True, True, False)
    assert not is_simple("phrases.number(" + "r" * LONGEST + ")")
    assert [said for said in unknown_names(PLANTED) if "F821" in said and "rate" in said]
