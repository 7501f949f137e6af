"""The scripts of others that pages carry, so that they fetch nothing."""

from functools import cache

import vl_convert

from deathmatch.paper.display import VEGALITE
from deathmatch.plan.paths import ROOT

DATATABLES = ROOT / "paper" / "source" / "explore" / "datatables" / "dataTables.min.js"


@cache
def vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that ends no element.

    Bundling them takes 4 s of CPU time.
    """
    return _contained(f"(()=>{{{vl_convert.javascript_bundle(vl_version=VEGALITE)}}})();")


def datatables() -> str:
    """Return DataTables as one script."""
    return _contained(DATATABLES.read_text())


def _contained(script: str) -> str:
    return script.replace("</script", "<\\/script")
