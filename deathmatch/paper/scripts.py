"""The scripts of others that pages carry, so that they fetch nothing."""

import hashlib
import json
from pathlib import Path

import vl_convert

from deathmatch.errors import UserError
from deathmatch.paper.display import VEGALITE
from deathmatch.plan.paths import ROOT

DATATABLES = ROOT / "paper" / "source" / "explore" / "datatables"


def vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that ends no element."""
    return _contained(f"(()=>{{{vl_convert.javascript_bundle(vl_version=VEGALITE)}}})();")


def datatables(folder: Path = DATATABLES) -> str:
    """Return DataTables as one script; UserError if it is not the file that origin.json locks."""
    origin = json.loads((folder / "origin.json").read_text())
    file = folder / Path(origin["file"]).name
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != origin["sha256"]:
        raise UserError(
            f"it is not {origin['package']} {origin['version']}",
            str(file.relative_to(ROOT) if file.is_relative_to(ROOT) else file),
            "take it from git again; origin.json next to it says where it is from",
        )
    return _contained(content.decode())


def _contained(script: str) -> str:
    return script.replace("</script", "<\\/script")
