"""What a server is made from: when it changes, the server's trials are measured again."""

import hashlib
from functools import cache

from deathmatch.plan.root import ROOT
from deathmatch.plan.server import Server


def files(server: Server) -> list[str]:
    """Return the files that the server is made from, relative to the project's root, sorted.

    They are those of its folder and of what `sources` of its server.toml names.
    """
    folders = [ROOT / "servers" / server.name, *(ROOT / path for path in server.sources)]
    return sorted(
        str(path.relative_to(ROOT))
        for folder in folders
        for path in [folder, *folder.rglob("*")]
        if path.is_file() and "__pycache__" not in path.parts
    )


@cache
def fingerprint(server: Server) -> str:
    """Return the SHA-256 of the names and contents of the server's sources, in hexadecimal."""
    digest = hashlib.sha256()
    for name in files(server):
        content = (ROOT / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()
