"""The explorer's rows of servers: settings with reasons, sources, how each is run.

In: `servers/`, and the trials of a dataset. Out: one dict a server, of text alone.
"""

import polars as pl

from deathmatch.analysis import systems
from deathmatch.paper.claim_rows import post
from deathmatch.plan import files
from deathmatch.plan.server import Server, source_files

_UNMEASURED = {"version": "", "conformance": ""}


def rows(trials: pl.DataFrame) -> list[dict]:
    """Return every server of `servers/`, and those of the trials that have no folder any more.

    Sorted by title. `trials` are `views.trials`.
    """
    known = systems.measured(trials)
    shown = [_row(server) | known.get(server.name, _UNMEASURED) for server in files.servers()]
    gone = known.keys() - {row["server"] for row in shown}
    shown += [_gone(name, shown[0]) | known[name] for name in sorted(gone)]
    return sorted(shown, key=lambda row: (row["title"].lower(), row["server"]))


def _row(server: Server) -> dict:
    release = server.release
    return {
        "server": server.name,
        "title": server.title,
        "language": server.language,
        "post": post(server.source),
        "about": server.about,
        "instrument": server.instrument,
        "not_run": server.not_run or "",
        "release": release.name if release else "",
        "year": release.year if release else None,
        "origin": release.origin if release else "",
        "remark": (release.remark or "") if release else "",
        "experiments": list(server.experiments),
        "run": server.run,
        "build": (server.build or "").strip(),
        "limits": list(map(list, server.limits.items())),
        "deviations": list(map(list, server.deviations.items())),
        "configurations": [
            {
                "title": server.called(name),
                "about": configuration.about,
                "experiments": list(configuration.experiments or ()),
                "settings": [
                    f"{key} = {value}" for key, value in configuration.placeholders.items()
                ],
            }
            for name, configuration in server.configurations.items()
        ],
        "variants": systems.variants(server),
        "packages": _packages(server),
        "sources": source_files(server),
    }


def _gone(name: str, like: dict) -> dict:
    """Return the row of a server whose folder is gone, with the keys of another row."""
    empty = {key: [] if isinstance(value, list) else "" for key, value in like.items()}
    about = "Its folder was removed."
    own = {"server": name, "title": name, "about": about, "instrument": False, "year": None}
    return empty | own


def _packages(server: Server) -> list[str]:
    """Return what it needs installed: "Debian: erlang-base", "pypi: requirements.txt"."""
    packages = server.packages
    listed = {"tools": packages.tools, "Debian": packages.debian, "Nix": packages.nix or ()}
    lines = [f"{title}: {', '.join(names)}" for title, names in listed.items() if names]
    return lines + [f"{kind}: {file}" for kind, file in packages.lists.items()]
