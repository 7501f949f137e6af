"""Is a testbed fit to measure on? `./shell deathmatch audit TESTBED`.

Builds the testbed, reads what its hosts are like, looks for a second what else runs and for
another one what the link carries; then says what is bad, why, and the command that fixes it, and
which claims can be decided here that the committed dataset could not, for want of CPUs.
Exit status 0: nothing refuses a run; 3: something does; 1: it could not be looked at.
"""

import argparse
import json
import os
import shutil
import tempfile
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import yaml
from pydantic import TypeAdapter

from deathmatch.analysis import decidable
from deathmatch.checks.report import UNCHECKED, say
from deathmatch.errors import UserError
from deathmatch.hosts import netns_testbed, sandbox, ssh_testbed, testbed
from deathmatch.hosts.audit import demand, facts, read, report, rules
from deathmatch.plan import files, matrix
from deathmatch.plan import testbed as plan
from deathmatch.plan.root import ROOT

WINDOW_S = 1.0
LINK_S = 1.0
# How long processes are looked at, to name them.
NAMING_S = 0.3
BUILD = ROOT / "build"
CONFIG = Path("config/config.yaml")


def main(given: argparse.Namespace) -> int:
    """Audit the testbed named on the command line; return the exit status."""
    bed = files.testbed(given.testbed)
    accepted = [*bed.accepts, *given.accept]
    rules.check_accepts(bed.accepts, f"config/testbeds/{bed.name}.toml, key accepts")
    rules.check_accepts(given.accept, "--accept")
    asked = demand.most(
        demand.trial_demand(trial.spec()) for trial in matrix.trials(given.dataset or _dataset())
        if trial.testbed(bed.name) == bed.name
    )  # fmt: skip
    audit = _apart(bed) if bed.kind == "ssh" else _sandboxed(bed)
    if audit is None:
        # The sandbox has said why.
        return UNCHECKED
    audit = replace(audit, demand=asked)
    findings = rules.ask(audit, accepted)
    left = _cpus_left(bed, audit)
    claims = decidable.by_place(left)
    if given.json:
        made = report.as_json(audit, findings, accepted)
        made["claims"] = {place or bed.name: names for place, names in claims.items()}
        say(json.dumps(made, indent=2))
    else:
        width = shutil.get_terminal_size((100, 24)).columns
        say(report.text(audit, findings, width, decidable.text(claims, left)))
    return findings.status


def _cpus_left(bed: plan.Testbed, audit: facts.Audit) -> float:
    """Return the CPUs left to a server that may use all, by a client that takes one whole CPU."""
    if audit.separate:
        return len(audit.cpus[testbed.SERVER])
    available = sorted(os.sched_getaffinity(0))
    own = set(testbed.cpus(bed.server.cpus_all or bed.server.cpus, available))
    others = {cpu for side in bed.client_sides for cpu in testbed.cpus(side.cpus, available)}
    return len(own) - min(len(own & others), len(bed.client_sides))


def _write_inside(bed: plan.Testbed, file: Path) -> None:
    """Build the testbed, in a sandbox, and write what it is like."""
    audit = _looked_at(netns_testbed.build(bed, {}))
    file.write_text(json.dumps(asdict(audit)))


def _looked_at(hosts: testbed.Testbed) -> facts.Audit:
    """Return what hosts are like, and end them."""
    try:
        hosts.raise_descriptors()
        return read.testbed(
            hosts, hosts.cpus(), facts.Demand(), window_s=WINDOW_S, link_s=LINK_S
        )  # fmt: skip
    finally:
        hosts.end()


def _apart(bed: plan.Testbed) -> facts.Audit:
    """Return what the testbed's machines are like."""
    return _looked_at(ssh_testbed.connect(bed, {}))


def _sandboxed(bed: plan.Testbed) -> facts.Audit | None:
    """Return what the testbed is like, from a sandbox of its own under the testbed's lock.

    None if it cannot be audited.
    """
    # Not in /tmp, which may be a folder of /run: the sandbox has one of its own.
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        file = Path(folder, "audit.json")
        if sandbox.call(partial(_write_inside, bed, file)) != 0:
            return None
        audit = TypeAdapter(facts.Audit).validate_json(file.read_text())
    return audit if audit.separate else _named(audit)


def _named(audit: facts.Audit) -> facts.Audit:
    """Return the audit with the processes of this machine, which cannot be seen in a sandbox."""
    seen = read.load(NAMING_S).processes
    hosts = {
        name: replace(host, load=replace(host.load, processes=seen))
        for name, host in audit.hosts.items()
    }
    return replace(audit, hosts=hosts)


def _dataset() -> str:
    """Return the dataset that is measured by default."""
    try:
        return yaml.safe_load(CONFIG.read_text())["dataset"]
    except (OSError, yaml.YAMLError, TypeError, KeyError) as error:
        raise UserError(
            f"no dataset is set there ({type(error).__name__})", str(CONFIG), "name one: --dataset"
        ) from None
