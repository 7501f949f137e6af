"""Captions of figures for `snakemake --report`, from the executed notebooks."""

import json
from collections.abc import Iterator
from pathlib import Path

MIME = "application/vnd.deathmatch+json"


def captions(dataset: str) -> dict[str, str]:
    """Return by label what a report says under a figure: caption, n, interval, testbed, source.

    The figures are those of the dataset's executed notebooks. The paper has n and the usual testbed
    in its method.
    """
    return {about["label"]: _text(about) for about in _figures(dataset)}


def _text(about: dict) -> str:
    parts = [about["caption"], about["measured"], f"Source: {', '.join(about['source'])}."]
    # reStructuredText would take these for markup of its own.
    return " ".join(" ".join(filter(None, parts)).replace("*", "").replace("`", "").split())


def _figures(dataset: str) -> Iterator[dict]:
    for path in sorted(Path("paper", dataset, "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text())["cells"]:
            for output in cell.get("outputs", []):
                about = output.get("data", {}).get(MIME, {})
                if about.get("kind") == "figure":
                    yield about
