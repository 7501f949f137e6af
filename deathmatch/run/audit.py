"""Is a testbed fit to measure on? `./shell deathmatch audit TESTBED`.

Builds the testbed, reads what its hosts are like and looks for a second what else runs; then
reports what is bad, why, and the command that fixes it.
Exit status 0: nothing refuses a run; 3: something does; 1: it could not be looked at.
"""

import argparse
import json
import shutil
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from deathmatch.checks import findings
from deathmatch.hosts import audit, netns_testbed, sandbox, ssh_testbed, testbed
from deathmatch.hosts.audit import Audit, Demand
from deathmatch.plan import files, matrix
from deathmatch.plan import testbed as plan
from deathmatch.plan.paths import ROOT
from deathmatch.run import cli_config

WINDOW_S = 1.0


def main(given: argparse.Namespace) -> int:
    """Audit the testbed named on the command line; return the exit status."""
    bed = files.testbed(given.testbed)
    audit.check_accepts(bed.accepts, f"config/testbeds/{bed.name}.toml, key accepts")
    audit.check_accepts(given.accept, "--accept")
    trials = matrix.trials(given.dataset or cli_config.check_file().get("dataset", ""))
    specs = [trial.spec() for trial in trials if trial.testbed(bed.name) == bed.name]
    demand = audit.most(map(audit.trial_demand, specs))
    if bed.kind == "ssh":
        seen = _looked_at(demand, ssh_testbed.connect(bed, {}))
    elif (seen := _sandboxed(demand, bed)) is None:
        # The sandbox has said why.
        return findings.UNCHECKED
    found = audit.findings(seen, [*bed.accepts, *given.accept])
    if given.json:
        findings.say(json.dumps({
            "audit": asdict(seen), "findings": [one.as_json() for one in found],
        }, indent=2))  # fmt: skip
    else:
        fit = "" if findings.status(found) == findings.PASSED else "not "
        counts = findings.counts(found) or "nothing found"
        spared = "; in spite of it: --accept CHECK, or `accepts` in the testbed's file"
        verdict = f"{fit}fit to measure ({counts}{spared if fit else ''})"
        width = max(shutil.get_terminal_size((100, 24)).columns, findings.LEAST_WIDTH)
        parts = [*_shown(seen, width), findings.report(found, width)]
        findings.say("\n\n".join(part for part in (*parts, verdict) if part))
    return findings.status(found)


def _shown(seen: Audit, width: int) -> Iterator[str]:
    """Return a paragraph for each host."""
    for name, state in seen.hosts.items():
        lines = [f"{name}, on CPUs {', '.join(map(str, seen.cpus[name]))}"]
        for part, facts in state.items():
            known = (f"{fact} {value}".replace("None", "unknown") for fact, value in facts.items())
            text = f"  {part}: {', '.join(known)}"
            lines.append(
                textwrap.fill(text, max(width, findings.LEAST_WIDTH), subsequent_indent="    ")
            )
        yield "\n".join(lines)


def _looked_at(demand: Demand, hosts: testbed.Testbed) -> Audit:
    """Return what hosts are like, and end them."""
    try:
        hosts.raise_descriptors()
        return audit.read(hosts, hosts.cpus(), demand, WINDOW_S)
    finally:
        hosts.end()


def _sandboxed(demand: Demand, bed: plan.Testbed) -> Audit | None:
    """Return what the testbed is like, from a sandbox of its own; None if there can be none."""
    # Not in /tmp, which may be a folder of /run: the sandbox has one of its own.
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        file = Path(folder, "audit.json")

        def write() -> None:
            file.write_text(json.dumps(asdict(_looked_at(demand, netns_testbed.build(bed, {})))))

        if sandbox.call(write) != 0:
            return None
        return Audit(**json.loads(file.read_text()) | {"demand": demand})
