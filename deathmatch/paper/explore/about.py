"""A dataset's machines, commits and citation, as dicts of text and numbers."""

import polars as pl

from deathmatch.analysis import provenance
from deathmatch.data import archive
from deathmatch.paper.claim_rows import post
from deathmatch.plan import files, paths

_MACHINE = ["testbed", "cpu", "cpus", "memory_bytes", "kernel", "os", "toolchain"]


def summary(dataset: str, trials: pl.DataFrame) -> dict:
    """Return what the page says about a dataset as a whole, by its `views.trials`."""
    spec = files.dataset(dataset) if files.exists("dataset", dataset) else None
    known = trials.drop_nulls("cpu")
    return {
        "dataset": dataset,
        "title": spec.title if spec else "",
        "remark": (spec.remark or "") if spec else "",
        "waived": provenance.waived(spec),
        "trials": len(trials),
        "measured": int(trials["outcome"].str.starts_with("measured").sum()),
        "servers": trials["server"].n_unique(),
        "began": _day(trials["started_at"].min()),
        "ended": _day(trials["started_at"].max()),
        "machines": _counted(known, _MACHINE),
        "commits": _counted(known, ["commit"]),
        "place": provenance.place(trials) if len(known) else "",
        "cannot": provenance.cannot(trials) if len(known) else "",
        "raw": {
            name: archive.logs_prefix(dataset, name)
            for name in trials["experiment"].unique(maintain_order=True)
        },
    }


def experiments(measured: set[str]) -> list[dict]:
    """Return the experiments with their questions and the checks of an answer, by title."""
    known = [files.experiment(name) for name in files.names("experiment")]
    rows = [
        {
            "experiment": spec.name,
            "title": spec.title,
            "post": post(spec.source),
            "question": spec.question,
            "factors": {name: factor.title for name, factor in spec.factors.items()},
            "checks": [check.name for check in spec.conformance or ()],
        }
        for spec in known
        if spec.name in measured
    ]
    return sorted(rows, key=lambda row: row["title"])


def citation(dataset: str) -> dict:
    """Return how to cite the study and the dataset: a sentence, and an entry of BibTeX."""
    project = paths.project()
    authors = [author["name"] for author in project["authors"]]
    title = f"{project['title']}: dataset {dataset}"
    year = project["date-released"][:4]
    fields = {
        "author": " and ".join(f"{{{name}}}" for name in authors),
        "title": title, "version": project["version"], "year": year,
    }  # fmt: skip
    lines = [f"  {name:7} = {{{value}}}," for name, value in fields.items()]
    return {
        "sentence": f"{'; '.join(authors)}: {title}. Version {project['version']}. {year}.",
        "message": project["message"],
        "licence": project["license"],
        "bibtex": "\n".join([f"@misc{{deathmatch-{dataset},", *lines, "}"]),
    }


def _counted(trials: pl.DataFrame, columns: list[str]) -> list[dict]:
    counts = trials.group_by(columns, maintain_order=True).agg(trials=pl.len())
    return counts.sort("trials", *columns, descending=[True, *(False for _ in columns)]).to_dicts()


def _day(time) -> str:
    return f"{time:%Y-%m-%d}" if time else ""
