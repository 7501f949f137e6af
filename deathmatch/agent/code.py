"""Which code this agent is: its files and their digest."""

import hashlib
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def files() -> list[Path]:
    """Return the files that make up the agent, relative to the folder of the package, sorted."""
    paths = [PACKAGE / "__init__.py", *(PACKAGE / "agent").glob("*.py")]
    return sorted(path.relative_to(PACKAGE.parent) for path in paths)


def digest() -> str:
    """Return 16 digits that change with any of the files or their names; reads them all."""
    hashed = hashlib.sha256()
    for path in files():
        content = (PACKAGE.parent / path).read_bytes()
        hashed.update(f"{path} {len(content)}\n".encode() + content)
    return hashed.hexdigest()[:16]
