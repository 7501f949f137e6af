"""Which code a rule uses: the modules that its command imports, and what these import in turn."""

import re
from functools import cache
from pathlib import Path

NAME = "deathmatch"
# Python's parser would take longer than all other reading of a dry run.
PARTS = re.compile(rf"^\s*from ({NAME}[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
WHOLE = re.compile(rf"^\s*import ({NAME}[\w.]*)", re.MULTILINE)
LISTED = re.compile(r"(\w+)(?: as \w+)?")


def of_module(module: str, root: Path = Path()) -> list[str]:
    """Return the source files, relative to `root`, of a module and of all that it imports, sorted.

    `module` is a name in the package, such as "data.tidy". The files are a rule's input: a change
    of any other module does not make its output stale.
    """
    return _reached([f"{NAME}.{module}"], root)


def of_notebook(file: Path, root: Path = Path()) -> list[str]:
    """Return the source files that a notebook's cells and the module that runs it import."""
    imported = _imported((root / file).read_text())
    return _reached([f"{NAME}.paper.notebook", *imported], root)


def _reached(modules: list[str], root: Path) -> list[str]:
    files: set[Path] = set()
    waiting = [file for module in modules for file in _files(module, root)]
    while waiting:
        file = waiting.pop()
        if file not in files:
            files.add(file)
            waiting += _imports(file, root)
    return sorted(str(file.relative_to(root)) for file in files)


@cache
def _imports(file: Path, root: Path) -> tuple[Path, ...]:
    names = _imported(file.read_text())
    return tuple(source for name in names for source in _files(name, root))


def _imported(source: str) -> set[str]:
    """Return the names of this package that a source imports, at any level."""
    names = set(WHOLE.findall(source))
    for module, listed in PARTS.findall(source):
        names |= {f"{module}.{name}" for name in LISTED.findall(listed)}
    return names


@cache
def _files(name: str, root: Path) -> tuple[Path, ...]:
    """Return the files of a module, or of a name in it, and of the packages around it."""
    path = root.joinpath(*name.split("."))
    candidates = [path.with_suffix(".py"), path.parent.with_suffix(".py")]
    candidates += [folder / "__init__.py" for folder in (path, *path.parents) if folder != root]
    return tuple(file for file in candidates if file.is_file())
