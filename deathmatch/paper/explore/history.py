"""What releases of each system cost over the years, as charts and rows for the page.

In: the experiment `history`, of a dataset or of one that it shows `also`. Out: a dict of text,
numbers and Vega-Lite's charts; none without a point of a release.
"""

import altair as alt

from deathmatch.analysis import history, views
from deathmatch.analysis.interval import Interval
from deathmatch.paper.charts import history as charts
from deathmatch.paper.explore import variants
from deathmatch.quantities.definitions import CPU_PER_REPLY

_HEIGHT = 170
_COLUMNS = ["system", "release", "year", "runtime", "server"]
# The page has its own theme, which differs by night.
_OF_PAGE = {"$schema", "config"}


def all_views(datasets: list[str]) -> list[dict]:
    """Return the view of each dataset; once where two datasets show the same trials."""
    views_of = [view(dataset) for dataset in datasets]
    return list({shown["dataset"]: shown for shown in views_of if shown}.values())


def view(dataset: str) -> dict | None:
    """Return CPU per reply of the releases: a chart for each system, and a row for each release.

    Each chart has its own legend, since the page arranges the charts by the screen's width.
    """
    measured = views.shown(dataset, history.EXPERIMENT)
    cost = history.over_years(measured.valid_points, CPU_PER_REPLY)
    panels = charts.by_system(cost, CPU_PER_REPLY.heading)
    if not panels:
        return None
    charts_of_page = [
        {"system": system, "spec": _spec(panel.properties(height=_HEIGHT))}
        for system, panel in panels.items()
    ]
    return {
        "dataset": measured.dataset,
        "origin": views.origin(measured, dataset).replace("*", "").replace("`", ""),
        "rates": measured.rates,
        "sources": measured.source("points", "trials"),
        "charts": charts_of_page,
        "releases": [_row(row) for row in cost.to_dicts()],
    }


def _spec(panel: alt.LayerChart) -> dict:
    return {key: value for key, value in panel.to_dict().items() if key not in _OF_PAGE}


def _row(row: dict) -> dict:
    described = {name: row[name] for name in _COLUMNS}
    return described | {CPU_PER_REPLY.name: variants.cell(Interval.from_row(row))}
