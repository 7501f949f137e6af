"""Report whether a testbed is fit to measure on: `./shell deathmatch audit TESTBED`.

Opens the testbed, reads the state of its hosts and watches for a second what else runs; then prints
each finding with its reason and the command that fixes it.
Exit status: 0 if no finding refuses a run, 3 if one does, 1 if the testbed could not be read.
"""

import argparse
import json
import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import asdict

from deathmatch.checks import findings
from deathmatch.hosts import audit, netns_testbed, ssh_testbed, testbed
from deathmatch.hosts.audit import Audit, Demand
from deathmatch.plan import files, matrix
from deathmatch.run import cli_config, subcommands

WINDOW_S = 1.0


def main(given: argparse.Namespace) -> int:
    """Audit the testbed named on the command line; return the exit status."""
    bed = files.testbed(given.testbed)
    audit.check_accepts(bed.accepts, f"config/testbeds/{bed.name}.toml, key accepts")
    audit.check_accepts(given.accept, "--accept")
    trials = matrix.trials(given.dataset or cli_config.check_file().get("dataset", ""))
    specs = [trial.spec() for trial in trials]
    demand = audit.most(map(audit.trial_demand, specs))
    if bed.kind == "ssh":
        seen = _read(demand, ssh_testbed.connect(bed, {}))
    else:
        status, fields = subcommands.in_sandbox(
            lambda: asdict(_read(demand, netns_testbed.build(bed, {})))
        )
        if status:
            # The sandbox has printed the reason.
            return findings.UNCHECKED
        seen = Audit(**fields | {"demand": demand})
    found = audit.findings(seen, [*bed.accepts, *given.accept])
    if given.json:
        findings.say(json.dumps({
            "audit": asdict(seen), "findings": [one.as_json() for one in found],
        }, indent=2))  # fmt: skip
    else:
        fit = "" if findings.status(found) == findings.PASSED else "not "
        counts = findings.counts(found) or "nothing found"
        override = "; to measure anyway: --accept CHECK, or `accepts` in the testbed's file"
        verdict = f"{fit}fit to measure ({counts}{override if fit else ''})"
        width = max(shutil.get_terminal_size((100, 24)).columns, findings.LEAST_WIDTH)
        parts = [*_shown(seen, width), findings.report(found, width)]
        findings.say("\n\n".join(part for part in (*parts, verdict) if part))
    return findings.status(found)


def _shown(seen: Audit, width: int) -> Iterator[str]:
    """Yield a paragraph for each host."""
    for name, state in seen.hosts.items():
        lines = [f"{name}, on CPUs {', '.join(map(str, seen.cpus[name]))}"]
        for part, facts in state.items():
            known = (f"{fact} {value}".replace("None", "unknown") for fact, value in facts.items())
            text = f"  {part}: {', '.join(known)}"
            lines.append(textwrap.fill(text, width, subsequent_indent="    "))
        yield "\n".join(lines)


def _read(demand: Demand, hosts: testbed.Testbed) -> Audit:
    """Return the audit of open hosts, and close them."""
    try:
        hosts.raise_descriptors()
        return audit.read(hosts, hosts.cpus(), demand, WINDOW_S)
    finally:
        hosts.end()
