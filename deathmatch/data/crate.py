"""A dataset as an RO-Crate 1.1: `ro-crate-metadata.json`, its files and how they came about.

Of the Workflow Run profiles it takes the action that made the data and its files' checksums; the
library rocrate is in no release of nixpkgs that this project uses, and needs more than this.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deathmatch.data import checksums
from deathmatch.plan.dataset import EVERY_TABLE, TABLES

NAME = "ro-crate-metadata.json"
SPECIFICATION = "https://w3id.org/ro/crate/1.1"
CONTEXT = [
    f"{SPECIFICATION}/context",
    {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"},
]
FORMATS = {
    ".parquet": "application/vnd.apache.parquet", ".xz": "application/x-xz", ".yml": "text/yaml",
    ".cff": "text/yaml", ".json": "application/json", ".sha256": "text/plain",
}  # fmt: skip
RAW = "What the tools wrote, of each trial: a folder for server, variant and number."


@dataclass(frozen=True)
class About:
    """What the crate says of the dataset; times as in `trial.json`."""

    name: str
    title: str
    description: str
    version: str
    """The version of the project that certified it."""
    licence: str
    authors: tuple[str, ...]
    keywords: tuple[str, ...]
    began_at: str
    ended_at: str
    commits: tuple[str, ...]
    checked: str
    """The summary of the strict check."""


Node = dict[str, Any]


def metadata(folder: Path, about: About) -> Node:
    """Return the crate's metadata, ready for JSON; the same for the same files."""
    files = [*checksums.listed(folder)]
    files += [folder / name for name in (checksums.NAME, "codecheck.yml")]
    top = [file for file in files if len(file.relative_to(folder).parts) == 1]
    experiments = sorted({file.relative_to(folder).parts[0] for file in files} - _names(top))
    parts = [_experiment(folder, name, files) for name in experiments]
    shown = [file for file in files if len(file.relative_to(folder).parts) <= 2]
    authors = [_reference(_author(name)) for name in about.authors]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": about.title,
        "description": about.description,
        "version": about.version,
        "datePublished": about.ended_at[:10],
        "license": {"@id": f"https://spdx.org/licenses/{about.licence}"},
        "keywords": ", ".join(about.keywords),
        "temporalCoverage": f"{about.began_at}/{about.ended_at}",
        "author": authors[0] if len(authors) == 1 else authors,
        "publisher": authors[0],
        "hasPart": [
            _reference(part) for part in [*parts, *(_file(folder, f) for f in sorted(top))]
        ],
        "mentions": [{"@id": "#measured"}, {"@id": "#checked"}],
    }
    graph = [
        {
            "@id": NAME,
            "@type": "CreativeWork",
            "conformsTo": {"@id": SPECIFICATION},
            "about": {"@id": "./"},
        },
        root,
        *parts,
        *(_file(folder, file) for file in sorted(shown)),
        *(_author(name) for name in about.authors),
        {
            "@id": f"https://spdx.org/licenses/{about.licence}",
            "@type": "CreativeWork",
            "name": about.licence,
        },
        {
            "@id": "#deathmatch",
            "@type": "SoftwareSourceCode",
            "name": "Deathmatch",
            "description": "The harness; its versions are commits of git.",
            "version": ", ".join(about.commits),
            "programmingLanguage": "Python",
        },
        {
            "@id": "#measured",
            "@type": "CreateAction",
            "name": f"snakemake --config dataset={about.name}",
            "startTime": about.began_at,
            "endTime": about.ended_at,
            "instrument": {"@id": "#deathmatch"},
            "result": {"@id": "./"},
        },
        {
            "@id": "#checked",
            "@type": "AssessAction",
            "name": f"deathmatch check --strict {about.name}",
            "description": about.checked,
            "instrument": {"@id": "#deathmatch"},
            "object": {"@id": "./"},
        },
    ]
    return {"@context": CONTEXT, "@graph": graph}


def _names(files: list[Path]) -> set[str]:
    return {file.name for file in files}


def _reference(node: Node) -> Node:
    return {"@id": node["@id"]}


def _author(name: str) -> Node:
    return {"@id": f"#{name.lower().replace(' ', '-')}", "@type": "Organization", "name": name}


def _experiment(folder: Path, name: str, files: list[Path]) -> Node:
    own = [file for file in files if file.parent == folder / name]
    deeper = any(name == file.relative_to(folder).parts[0] and file not in own for file in files)
    return {
        "@id": f"{name}/",
        "@type": "Dataset",
        "name": name,
        "description": f"The experiment {name!r}: {', '.join(_tables(own))}, and the raw logs."
        + (f" {RAW}" if deeper else ""),
        "hasPart": [_reference(_file(folder, file)) for file in sorted(own)],
    }


def _tables(files: list[Path]) -> list[str]:
    """Return the tables of an experiment: those of all, and what else is there."""
    there = {file.stem for file in files if file.suffix == ".parquet"}
    return [name for name in EVERY_TABLE if name in TABLES or name in there]


def _file(folder: Path, file: Path) -> Node:
    name = file.relative_to(folder).as_posix()
    return {
        "@id": name,
        "@type": "File",
        "name": name,
        "contentSize": str(file.stat().st_size),
        "encodingFormat": FORMATS.get(file.suffix, "application/octet-stream"),
        "sha256": checksums.digest(file),
    }
