"""One reading: how a rate of connections is accepted, by the account of the C server `acceptors`.

Called in a sandbox; see `instruments.accepting`.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts.testbed import Testbed
from deathmatch.measure import client, trial
from deathmatch.measure.context import prepare
from deathmatch.plan.spec import Level
from deathmatch.plan.trial import Trial

# With the last argument the server counts, and says on SIGTERM what it counted.
RUN = "acceptors {host} {port} {backlog} {accept} {work_us} {threads}"
# What is not answered by then was dropped, and would come again with the retries of its SYN.
LOAD = {"requests_per_connection": 1, "timeout_s": 2}


def reading(
    one: Trial,
    bed: Testbed,
    asked: Mapping[str, Level],
    rate_rps: int,
    duration_s: float,
    out: Path,
) -> dict:
    """Return what the server counted, as servers/acceptors/acceptors.c has it, and `replies`.

    `asked` has the placeholders of RUN. UserError if the server does not start or gives no account.
    """
    counting = one.server.model_copy(update={"run": RUN})
    context = prepare(one.model_copy(update={"server": counting}), one.spec(), bed, out)
    context = replace(context, values=context.values | dict(asked))
    try:
        running, problem = trial.start(context)
        if problem:
            raise UserError(f"the server did not start: {problem}\n{running.tail()}", RUN)
        offered = client.offer(context, rate_rps, duration_s, out / "report.txt", load=LOAD)
        replies = client.replies(context, offered, duration_s)
        trial.stop(context, running)
    finally:
        context.end()
    return account(running.log) | {"replies": replies}


def account(log: Path) -> dict:
    """Return the account in the last line of the server's output; UserError if there is none."""
    last = log.read_text(errors="replace").rstrip("\n").rpartition("\n")[2]
    try:
        return json.loads(last)
    except ValueError:
        what = f"the server gave no account of what it accepted, but {last!r}"
        raise UserError(what, log.name, "run it again") from None
