"""Which modules Python and the notebooks import, by the names that nixpkgs gives them."""

import ast
import functools
import re
import sys
import threading
from pathlib import Path

PARSING = threading.Lock()
# Modules that nixpkgs calls by another name, or brings with another.
MODULES = {
    "IPython": "ipython", "geventwebsocket": "gevent-websocket", "pydantic_core": "pydantic",
    "vl_convert": "vl-convert-python", "yaml": "pyyaml",
}  # fmt: skip


def imported(sources: list[Path]) -> set[str]:
    """Return nixpkgs' names of the modules imported, neither Python's own nor beside the source."""
    found = set()
    for source in sources:
        beside = {path.stem for path in source.parent.iterdir()}
        found |= {name for name in _imports(source) if name not in beside}
    return {MODULES.get(name, name.replace("_", "-")) for name in found - sys.stdlib_module_names}


def _imports(source: Path) -> set[str]:
    text = source.read_text()
    if source.suffix != ".py":
        return set(re.findall(r"^\s*(?:import|from) (\w+)", text, re.MULTILINE))
    # Two threads that parse at once break Python 3.11's parser.
    with PARSING:
        return _imports_of_python(text)


@functools.cache
def _imports_of_python(text: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module.partition(".")[0])
    return found


def ours(source: str) -> set[str]:
    """Return what a source imports of the package; a relative import is a mistake."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: a relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name for name in names if name.startswith("deathmatch.")}
