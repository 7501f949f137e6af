"""Run one MyST notebook and fill in the numbers of its prose.

    ./shell deathmatch notebook notebooks/01-backlog.md --dataset quick \
        [--figures figures/quick] --out paper/quick/notebooks/01-backlog.ipynb

The notebook has a cell tagged `parameters` that sets `dataset`. It runs with this very Python, in
the repository's root, under a kernel specification made for the run, so that nothing installed in
the user's home affects it.
`{eval}``expression` in prose is evaluated where it stands, in the order of the cells. The result
holds no times and no machine's paths; it appears only when every cell has succeeded.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
import papermill
import traitlets.config
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.exceptions import PapermillExecutionError

from deathmatch.errors import UserError
from deathmatch.hosts import sandbox
from deathmatch.paper import MIME
from deathmatch.plan import paths
from deathmatch.plan.paths import ROOT

EVAL = re.compile(r"\{eval\}`([^`]+)`")
# A UNIX socket's path has 107 bytes; the number of the socket takes the rest.
LONGEST_SOCKET = 100
# What a cell prints comes by another socket than its end. nbclient waits 4 s for it, which is too
# short on a busy machine.
OUTPUT_WITHIN_S = 120
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def run(source: Path, out: Path, dataset: str, figures: Path) -> None:
    """Execute `source` on a dataset and write the result to `out` (.ipynb).

    Raises UserError for a notebook that cannot be read or sets no dataset, a failing cell or
    expression (naming its line in `source`), a kernel that ended, or outputs that do not arrive.
    """
    notebook = read(source)
    notebook.cells = [new for cell in notebook.cells for new in _with_evaluation(cell)]
    notebook.metadata["kernelspec"] = KERNEL
    with tempfile.TemporaryDirectory(prefix="deathmatch-", ignore_cleanup_errors=True) as scratch:
        before, after = Path(scratch) / "before.ipynb", Path(scratch) / "after.ipynb"
        nbformat.write(notebook, before)
        private = _private_jupyter(Path(scratch), figures)
        saved = os.environ.copy()
        os.environ.update(private)
        try:
            papermill.execute_notebook(
                before,
                after,
                {"dataset": dataset},
                kernel_name="python3",
                cwd=ROOT,
                progress_bar=False,
                config=_sockets(scratch),
                iopub_timeout=OUTPUT_WITHIN_S,
            )
        except PapermillExecutionError as error:
            raise _failure(error, source) from None
        except DeadKernelError:
            raise UserError(
                "the process that runs the cells ended", _shown(source),
                "the machine may have had too little memory for it: run it again alone",
            ) from None  # fmt: skip
        except CellTimeoutError:
            raise UserError(
                f"what a cell printed did not arrive within {OUTPUT_WITHIN_S} s of its end",
                _shown(source), "the machine may be busy: run it again alone",
            ) from None  # fmt: skip
        finally:
            os.environ.clear()
            os.environ.update(saved)
        done = nbformat.read(after, as_version=4)
    finished = _finished(done, source)
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = out.with_name(f".{out.name}.part")
    aside.write_text(json.dumps(finished, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    aside.replace(out)


def read(source: Path) -> nbformat.NotebookNode:
    """Return the notebook in a jupytext Markdown file; UserError if there is none to run."""
    if not source.is_file():
        raise UserError("there is no such notebook", _shown(source))
    try:
        notebook = jupytext.read(source)
    except Exception as error:
        raise UserError(
            f"not a MyST notebook: {error}", _shown(source), "see notebooks/ for the header"
        ) from None
    if not any(cell.cell_type == "code" for cell in notebook.cells):
        raise UserError(
            "no code cell was found", _shown(source),
            "it needs a jupytext header and ```{code-cell} blocks",
        )  # fmt: skip
    tagged = (c.source for c in notebook.cells if "parameters" in c.metadata.get("tags", []))
    if not re.search(r"^dataset = ", next(tagged, ""), re.M):
        raise UserError(
            "no cell tagged parameters sets the dataset", _shown(source), 'add dataset = "quick"'
        )
    return notebook


def _with_evaluation(cell: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    expressions = EVAL.findall(cell.source) if cell.cell_type == "markdown" else []
    if not expressions:
        return [cell]
    display = "__import__('deathmatch.paper.display').paper.display"
    code = f"{display}.evaluate({expressions!r}, globals())"
    return [nbformat.v4.new_code_cell(code, metadata={"tags": ["prose"]}), cell]


def _sockets(scratch: str) -> traitlets.config.Config:
    """Return where a kernel's sockets are: in `scratch`, of TCP where its path is too long.

    The default name of a socket's file is shared by all that start meanwhile.
    """
    path = f"{scratch}/kernel"
    if len(path) > LONGEST_SOCKET:
        return traitlets.config.Config()
    return traitlets.config.Config({"KernelManager": {"transport": "ipc", "ip": path}})


def _private_jupyter(scratch: Path, figures: Path) -> dict[str, str]:
    file = scratch / "jupyter" / "kernels" / "python3" / "kernel.json"
    file.parent.mkdir(parents=True)
    # The package first, which spares each kernel a second; see deathmatch/__init__.py.
    # A kernel that ends may close its sockets before its last message. Tornado logs that with a
    # traceback; `run` reports what matters of the end.
    start = (
        "import logging, deathmatch; from ipykernel import kernelapp; "
        "logging.getLogger('tornado.general').setLevel('CRITICAL'); "
        "kernelapp.launch_new_instance()"
    )
    argv = [sys.executable, "-c", start, "-f", "{connection_file}", "--log-level=CRITICAL"]
    file.write_text(json.dumps({"argv": argv} | KERNEL))
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {
        "JUPYTER_PATH": str(scratch / "jupyter"),
        "JUPYTER_PREFER_ENV_PATH": "0",
        **{f"JUPYTER_{kind}_DIR": str(scratch / kind) for kind in ("CONFIG", "DATA", "RUNTIME")},
        "IPYTHONDIR": str(scratch / "ipython"),
        "PYTHONPATH": path,
        "PYTHONHASHSEED": "0",
        "DEATHMATCH_FIGURES": str(figures.resolve()),
    }


def _failure(error: PapermillExecutionError, source: Path) -> UserError:
    """Return the error of a failed cell, with its line in the source file."""
    code, what = error.source, _ANSI.sub("", error.evalue)
    if "display.evaluate(" in code:
        expression = re.search(r"\{eval\}`[^`]+`", what)
        line, cell = _line(source, expression[0] if expression else ""), "the prose"
    else:
        line = _line(source, code) + _offset(error.traceback, code)
        cell = f"the cell that begins {code.strip().splitlines()[0]!r}"
    kind = "" if error.ename == "UserError" else f"{error.ename}: "
    first, *rest = what.strip().splitlines() or ["no message"]
    remedy = "\n  ".join(line.strip() for line in rest if line.strip())
    return UserError(f"{cell} fails: {kind}{first}", f"{_shown(source)}, line {line}", remedy)


def _line(source: Path, text: str) -> int:
    whole = source.read_text()
    return whole[: max(whole.find(text), 0)].count("\n") + 1


def _offset(traceback: list[str], code: str) -> int:
    for frame in map(_ANSI.sub, [""] * len(traceback), traceback):
        arrow = re.search(r"^-+> (\d+) (.*)$", frame, re.M)
        if arrow and arrow[2].strip() and arrow[2].strip() in code:
            return int(arrow[1]) - 1
    return 0


def _finished(done: nbformat.NotebookNode, source: Path) -> dict:
    """Return the executed notebook with its prose filled in and nothing that varies by run."""
    cells, texts = [], []
    for cell in done.cells:
        tags = cell.metadata.get("tags", [])
        if "prose" in tags:
            # A warning is an output too.
            shown = next(out for out in cell.outputs if MIME in out.get("data", {}))
            texts = list(shown.data[MIME]["texts"])
            continue
        if cell.cell_type == "markdown":
            for text in texts:
                cell.source = EVAL.sub(text.replace("\\", r"\\"), cell.source, count=1)
            texts = []
        cell.metadata = {"tags": tags} if tags else {}
        cell.id = f"cell-{len(cells) + 1:02}"
        cells.append(cell)
    about = {"notebook": _shown(source)}
    return done | {"cells": cells, "metadata": {"deathmatch": about, "kernelspec": KERNEL}}


def _shown(path: Path) -> str:
    path = path.resolve()
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name)


def main(given: argparse.Namespace) -> int:
    """Run the notebook that the command line names."""
    sandbox.die_with_owner()
    paths.check_dataset(given.dataset, "--dataset")
    figures = given.figures or ROOT / "figures" / given.dataset
    # Notebooks start side by side: none may count on another for the folder.
    figures.mkdir(parents=True, exist_ok=True)
    run(given.notebook, given.out, given.dataset, figures)
    return 0
