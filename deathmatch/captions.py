"""Captions of figures for `snakemake --report`, from the executed notebooks."""

import json
from functools import cache
from pathlib import Path

MIME = "application/vnd.deathmatch+json"


def caption(dataset: str, label: str) -> str:
    """Return what the paper says under a figure: caption, n, interval, testbed, source.

    Empty for a label that no notebook of the dataset shows.
    """
    about = _figures(dataset).get(label)
    if about is None:
        return ""
    parts = [about["caption"], about["measured"], f"Source: {', '.join(about['source'])}."]
    # reStructuredText would take these for markup of its own.
    return " ".join(" ".join(filter(None, parts)).replace("*", "").replace("`", "").split())


@cache
def _figures(dataset: str) -> dict[str, dict]:
    found = {}
    for path in sorted(Path("paper", dataset, "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text())["cells"]:
            for output in cell.get("outputs", []):
                about = output.get("data", {}).get(MIME, {})
                if about.get("kind") == "figure":
                    found[about["label"]] = about
    return found
