"""What a reader must know of the machine that measured, to compare."""

import os
import platform
from collections.abc import Callable, Sequence

from deathmatch.builds import toolchain
from deathmatch.hosts import hardware
from deathmatch.hosts.testbed import Installation
from deathmatch.measure import commit
from deathmatch.plan.paths import ROOT


def about(
    read: Callable[[str], str], site: Installation, names: Sequence[str] = (), where: str = ""
) -> dict:
    """Return the server's machine and the toolchain, for trial.json.

    `read` returns a file of that machine (`hosts.hardware.describe`).

    `names` are the load generators used, as they are at `site`, and `where` what needs them: each
    has its version under its name. Costs a process for each of them, and two of git.
    """
    return {
        **hardware.describe(read),
        "toolchain": toolchain.name(),
        "python": platform.python_version(),
        **site.clients(names, where),
        "snakemake": os.environ.get("DEATHMATCH_SNAKEMAKE", ""),
        **commit.of(ROOT).record(),
    }
