"""Make the explorer of a dataset: one HTML file next to the paper, with the rows behind every view.

    ./shell deathmatch explore --dataset quick --out paper/quick/explore.html

The page fetches nothing and is the same bytes each time. `document` returns its data;
`paper/source/explore/` has the page, its style and its scripts.
"""

import argparse
import html
import json
from pathlib import Path
from string import Template

from deathmatch.analysis import claims, published, views
from deathmatch.errors import UserError
from deathmatch.hosts import sandbox
from deathmatch.paper import report, scripts, theme
from deathmatch.paper.explore import about, ledger, quantities, servers, variants
from deathmatch.paper.explore.quantities import OF_RATES, OF_SWEEPS
from deathmatch.plan import files, paths
from deathmatch.plan.paths import ROOT

PAPER = ROOT / "paper" / "source"
SOURCE = PAPER / "explore"
# Each uses only those before it.
SCRIPTS = (
    "elements.js", "data.js", "address.js", "download.js", "cells.js", "browse.js", "charts.js",
    "variants.js", "server.js", "compare.js", "claims.js", "about.js", "main.js",
)  # fmt: skip
# A larger page would not open at once.
LARGEST_BYTES = 6_000_000


def document(dataset: str, paper: str = report.PAPER) -> dict:
    """Return all that the page shows of a dataset, as what JSON can hold."""
    known = [files.experiment(name) for name in files.names("experiment")]
    entries, results = claims.family(dataset)
    evidence = ledger.evidence(dataset, published.claims())
    trials = views.trials(dataset)
    roles = ledger.roles(evidence)
    parts = [variants.rows(dataset, name, roles) for name in sorted(trials["experiment"].unique())]
    rows = {
        kind: [row for part in parts for row in getattr(part, kind)]
        for kind in ("variants", "rates", "trials")
    }
    measured = {row["experiment"] for row in rows["variants"]}
    specs = [spec for spec in known if spec.name in measured]
    return {
        "version": paths.version(),
        "dataset": dataset,
        "paper": paper,
        "findings": [
            {"sentence": one.finding.sentence, "number": one.number, "verdict": one.verdict}
            for one in results
        ],
        "about": about.summary(dataset, trials),
        "citation": about.citation(dataset),
        "experiments": about.experiments(measured),
        "quantities": {
            name: {
                "title": shown.title,
                "unit": shown.unit,
                "definition": shown.definition,
                "better": "high" if shown.quantity and shown.quantity.higher_is_better else "low",
            }
            for name, shown in quantities.named(spec.client for spec in known).items()
        },
        "of_sweep": {s.name: [q.name for q in OF_SWEEPS.get(s.client, ())] for s in specs},
        "of_rate": {s.name: [q.name for q in OF_RATES.get(s.client, ())] for s in specs},
        "servers": servers.rows(trials),
        "claims": ledger.rows(entries, evidence),
        "theme": theme.config()["config"],
    } | {kind: table(kind_rows) for kind, kind_rows in rows.items()}


def table(rows: list[dict]) -> dict:
    """Return rows as their columns' names and lists of values, which is shorter in JSON."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return {"columns": columns, "rows": [[row.get(name) for name in columns] for row in rows]}


def embedded(value: dict) -> str:
    """Return JSON for a script element: no text in it can end the element or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def page(dataset: str, paper: str = report.PAPER) -> str:
    """Return the whole page."""
    own = [PAPER / "night.js", *(SOURCE / name for name in SCRIPTS)]
    styles = [PAPER / "style.css", SOURCE / "explore.css"]
    return Template((SOURCE / "page.html").read_text()).substitute(
        title=html.escape(f"Explore {dataset}: five web-server benchmarks, replicated"),
        dataset=html.escape(dataset),
        style="\n".join(path.read_text() for path in styles),
        data=embedded(document(dataset, paper)),
        paper=paper,
        called="Report" if paper == report.NAME else "Paper",
        datatables=scripts.datatables(),
        vega=scripts.vega(),
        scripts="\n".join(path.read_text() for path in own),
    )


def write(dataset: str, out: Path, paper: str = report.PAPER) -> Path:
    """Write the page, whole or not at all; UserError if it would be too large to open at once."""
    content = page(dataset, paper).encode()
    check_size(len(content), dataset)
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = out.with_name(f".{out.name}.part")
    aside.write_bytes(content)
    return aside.replace(out)


def check_size(size_bytes: int, dataset: str) -> None:
    """Raise UserError if a page of this size would not open at once."""
    if size_bytes > LARGEST_BYTES:
        raise UserError(
            f"the explorer would take {size_bytes / 1e6:.1f} MB, more than "
            f"{LARGEST_BYTES / 1e6:.0f}",
            f"data/{dataset}",
            "make it of fewer experiments",
        )


def main(given: argparse.Namespace) -> int:
    """Write the explorer and print its path."""
    sandbox.die_with_owner()
    paths.check_dataset(given.dataset, "--dataset")
    print(write(given.dataset, given.out, given.paper))
    return 0
