"""What releases of each system cost over the years, as charts and rows for the page.

In: the experiment `history`, of a dataset or of one that it shows `also`. Out: a dict of text,
numbers and Vega-Lite's charts; none without a point of a release.
"""

import altair as alt
import polars as pl

from deathmatch.analysis import history, views
from deathmatch.analysis.searched import AT_LEAST, CAPACITY
from deathmatch.analysis.stats import Interval
from deathmatch.paper.charts import history as charts
from deathmatch.paper.explore import variants
from deathmatch.quantities.definitions import CPU_PER_REPLY

_HEIGHT = 170
_COLUMNS = ["system", "release", "year", "runtime", "server"]
# The page has its own theme, which differs by night.
_OF_PAGE = {"$schema", "config"}


def view(dataset: str) -> dict | None:
    """Return CPU per reply and capacity of the releases: charts by system, a row for each release.

    Each chart has its own legend, since the page arranges the charts by the screen's width. A
    release whose capacity no search found has the reason.
    """
    measured = views.shown(dataset, history.EXPERIMENT)
    cost = history.over_years(measured.valid_points, CPU_PER_REPLY)
    if cost.is_empty():
        return None
    shown = [_shown(CPU_PER_REPLY.name, CPU_PER_REPLY.heading, CPU_PER_REPLY.definition, cost)]
    capacities = history.capacities(measured.probes)
    if len(capacities):
        shown.append(
            _shown(CAPACITY, history.CAPACITY_HEADING, history.CAPACITY_DEFINITION, capacities)
        )
    found = {row["server"]: row for row in capacities.to_dicts()}
    return {
        "dataset": measured.dataset,
        "origin": views.origin(measured, dataset).replace("*", "").replace("`", ""),
        "rates": measured.rates,
        "sources": measured.source("points", "trials", *(["probes"] if found else [])),
        "measures": shown,
        "releases": [_row(row, found.get(row["server"])) for row in cost.to_dicts()],
    }


def _shown(name: str, heading: str, definition: str, frame: pl.DataFrame) -> dict:
    panels = [
        {"system": system, "spec": _spec(panel.properties(height=_HEIGHT))}
        for system, panel in charts.by_system(frame, heading).items()
    ]
    return {"name": name, "heading": heading, "definition": definition, "charts": panels}


def _spec(panel: alt.LayerChart) -> dict:
    return {key: value for key, value in panel.to_dict().items() if key not in _OF_PAGE}


def _row(cost: dict, capacity: dict | None) -> dict:
    row = {name: cost[name] for name in _COLUMNS}
    row[CPU_PER_REPLY.name] = variants.cell(Interval.from_row(cost))
    if capacity:
        at_least = capacity["outcome"] == AT_LEAST
        row[CAPACITY] = variants.cell(Interval.from_row(capacity), at_least)
        row["why_no_capacity"] = "" if row[CAPACITY] else f"refused: {capacity['reason']}"
    return row
