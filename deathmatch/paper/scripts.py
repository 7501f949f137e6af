"""Third-party scripts, which pages embed so that they fetch nothing."""

import vl_convert

from deathmatch.paper.display import VEGALITE
from deathmatch.plan.paths import ROOT

DATATABLES = ROOT / "paper" / "source" / "explore" / "datatables" / "dataTables.min.js"


def vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, in which no end tag is."""
    return _contained(f"(()=>{{{vl_convert.javascript_bundle(vl_version=VEGALITE)}}})();")


def datatables() -> str:
    """Return DataTables as one script."""
    return _contained(DATATABLES.read_text())


def _contained(script: str) -> str:
    return script.replace("</script", "<\\/script")
