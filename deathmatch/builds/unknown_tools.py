"""Tools that a server's `packages.tools` names and nothing uses: most likely misspelt."""

import re
import shutil

from deathmatch.plan import registries, sources
from deathmatch.plan.root import ROOT
from deathmatch.plan.server import Server


def message(server: Server, path: str) -> str:
    """Return a line for each tool that is neither on `path` nor named by the server.

    Empty where there is none. A tool may have another name on Debian than in nixpkgs, so that one
    which is missing here need not be a mistake; and another tool may use it.
    """
    return "\n".join(
        f"{tool}, which packages.tools of servers/{server.name}/server.toml names, is missing, and "
        "no command or file of the server names it: correct it, or take it out"
        for tool in server.packages.tools
        if not shutil.which(tool, path=path) and not _spoken_of(server, tool)
    )


def _spoken_of(server: Server, tool: str) -> bool:
    word = re.compile(rf"(?<![\w.+-]){re.escape(tool)}(?![\w+-])")
    texts = [server.version, server.build or "", server.run]
    texts += [by for key, by in registries.INSTALLED_BY.items() if getattr(server.packages, key)]
    texts += [
        (ROOT / name).read_text(errors="replace")
        for name in sources.files(server)
        if not name.endswith("/server.toml")
    ]
    return any(map(word.search, texts))
