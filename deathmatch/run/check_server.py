"""Check that a server answers as its experiments ask: `./shell deathmatch check-server NAME`.

Builds the server if that is due, and starts it once for each experiment and configuration. There is
no load, and it takes seconds.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from deathmatch.builds import clients, clone, server_build
from deathmatch.errors import UserError
from deathmatch.hosts import netns_testbed, sandbox
from deathmatch.measure import steps
from deathmatch.measure import trial as measurement
from deathmatch.measure.context import NotMeasured, prepare
from deathmatch.plan import files, matrix, paths
from deathmatch.plan.trial import Trial
from deathmatch.run import subcommands

TESTBED = "netns"
DATASET = "full"  # it has every server
FAILED = 1


def main(given: argparse.Namespace) -> int:
    """Check the server named on the command line; return 1 if a check fails."""
    server = files.server(given.server)
    if given.experiment and given.experiment not in server.experiments:
        raise UserError(
            f"{paths.folder(server.name)} does not serve {given.experiment!r}",
            where="option --experiment",
            remedy=f"choose one that it serves: {', '.join(server.experiments)}",
        )
    built = server_build.built(server)
    if not built["ok"]:
        return FAILED
    print(f"{server.name}: {built['version']}")
    statuses = [
        _status(trial)
        for trial in _once(server.name, [given.experiment] if given.experiment else None)
    ]
    print(f"{server.name}: {'a check failed' if any(statuses) else 'all checks passed'}")
    return FAILED if any(statuses) else 0


def _once(name: str, experiments: list[str] | None) -> list[Trial]:
    """Return a trial for each experiment under load and each configuration there."""
    loaded = [
        trial for trial in matrix.trials(DATASET, [name], experiments) if trial.experiment.client
    ]
    first = {trial.experiment.name: trial for trial in reversed(loaded)}
    return [
        trial.model_copy(update={"variant": variant})
        for trial in first.values()
        for variant in matrix.product(
            trial.experiment,
            {matrix.CONFIGURATION: tuple(trial.server.configurations_in(trial.experiment.name))},
            trial.server,
        )
    ]


def _status(trial: Trial) -> int:
    """Check one variant in a sandbox; return 1 if it fails."""
    clone.Clone().clients(*clients.of_trial(trial))
    print(f"{trial.experiment.name} {trial.variant.name}", flush=True)
    with subcommands.scratch() as out:
        return sandbox.call(partial(_inside, trial, out))


def _inside(trial: Trial, out: Path) -> int:
    """Start the server in this process's namespaces, print each check; return 1 if one fails."""
    bed = netns_testbed.build(files.testbed(TESTBED), trial.spec()["sysctl"], clone.on)
    context = prepare(trial, trial.spec(), bed, out)
    try:
        with measurement.stopping(context, steps.start(context)) as running:
            checks = [check.record() for check in measurement.check(context, running)]
        steps.stop(context, running)
        reason = ""
    except NotMeasured as error:
        checks, reason = error.record.get("conformance", []), error.record["reason"]
    finally:
        context.end()
    for check in checks:
        known = trial.server.deviations.get(check["name"])
        state = "ok  " if check["ok"] else "ok, a known deviation" if known else "FAILED"
        print(f"  {state} {check['name']}{': ' if check['seen'] else ''}{check['seen']}")
    if reason and not checks:
        print(f"  FAILED {reason}")
    sys.stdout.flush()
    return FAILED if reason else 0
