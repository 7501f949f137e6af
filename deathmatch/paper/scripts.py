"""Third-party scripts, which pages embed so that they fetch nothing."""

from functools import cache

import vl_convert

from deathmatch.paper.display import VEGALITE
from deathmatch.plan.paths import ROOT

DATATABLES = ROOT / "paper" / "source" / "explore" / "datatables" / "dataTables.min.js"
ESCAPED = ("</script", "<\\/script")  # A script must not end its own element.


@cache
def vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script; bundling takes 4 s of CPU time."""
    return f"(()=>{{{vl_convert.javascript_bundle(vl_version=VEGALITE)}}})();".replace(*ESCAPED)


def datatables() -> str:
    """Return DataTables as one script."""
    return DATATABLES.read_text().replace(*ESCAPED)
