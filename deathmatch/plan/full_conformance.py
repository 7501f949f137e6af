"""Which trial of a variant has the conformance checks in full: the first of a build and a kernel.

The other trials of the variant have a short form. A record has the number of the trial with the
full form, and a key of what decides how the checks end; the strict check compares them.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Full:
    """The number of the trial that has the checks in full, and the key of what was checked."""

    trial: int
    key: str

    def record(self) -> dict[str, Any]:
        """Return it as `full_conformance` of trial.json has it."""
        return asdict(self)


def key_of(record: Mapping[str, Any]) -> str:
    """Return a hash of what decides how the checks of a trial end, as its record has it.

    The checks, the variant, the server's sources, tools and version, the testbed and the kernel.
    """
    spec, tools = record["spec"], record["tools"]
    decides = {
        "conformance": spec.get("conformance"), "factors": spec["factors"],
        "server_sha256": spec["server_sha256"], "tools": tools["server"],
        "version": record["version"], "testbed": record["testbed"],
        "kernel": tools["harness"].get("kernel"),
    }  # fmt: skip
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
