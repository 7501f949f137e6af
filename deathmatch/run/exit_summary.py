"""The text at the end of a run: its results, where the paper is, what failed, what to run next."""

import signal
import sys
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING

from deathmatch.data import sittings
from deathmatch.errors import UserError, as_typed
from deathmatch.plan import paths
from deathmatch.run import failures
from deathmatch.run.state import Job, Run
from deathmatch.run.study import Study

# It imports polars, which takes time that a dry run does not need.
if TYPE_CHECKING:
    from deathmatch.analysis.outcomes import Outcome

WIDTH = 100  # of a reason: its first line is shown, the rest is in the log
LISTING = "complete"  # the rule that lists the servers that could not be measured, and then fails
JUDGE = "sitting"  # the rule that fails where a sitting is refused


def interrupted_in_order() -> None:
    """Let Snakemake handle interrupts from now on: it ends its jobs."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def lines(run: Run, stopped: bool) -> str:
    """Return the text; its last three lines say where the paper is, what failed, what to run next.

    Before them: wrong answers, in red; why servers could not be measured, unless the run has listed
    that; the result of each server that was chosen by name, or has no usable number. `stopped`:
    an interrupt or a failure ended the run early.
    """
    study = run.study
    servers, broken, results, wrong = {}, [], [], []
    try:
        if study.trials:
            servers = failures.failures(study.dataset, study.choice)
            # There are no results before the dataset has all of its sittings.
            results = [] if stopped or study.lacking else _results(study, known=servers)
            wrong = [] if stopped else _alarms(study)
    except UserError as error:
        broken = [f"{error.where}: {error.what}"]
    jobs = [job for job in run.failed if job.rule != LISTING]
    again = failures.retry(study.dataset, study.choice)
    listed = len(jobs) < len(run.failed)
    unlisted = [failures.report(servers, again)] if servers and not listed else []
    empty = [result for result in results if not result.number]
    what = [
        *broken,
        *(f"{job.name}{f', its log {job.logs[0]}' if job.logs else ''}" for job in jobs),
        *(_of_server(*item) for item in servers.items()),
        *(
            f"{paths.folder(one.server)} has no usable number in {one.experiment}: {one.why}"
            for one in empty
        ),
    ]
    more = f"; and {len(what) - 1} more, listed above" if len(what) > 1 else ""
    return "\n".join(
        [
            *(f"\033[1;31m{text}\033[0m" if sys.stderr.isatty() else text for text in wrong),
            *unlisted,
            *(f"result: {one.server} in {one.experiment}: {_number(one)}" for one in results),
            *([] if stopped else _findings(study)),
            f"paper:  {_paper(run)}" if study.whole else f"report: {_paper(run)}",
            f"failed: {what[0] + more if what else _nothing(run)}",
            f"next:   {_next(run, jobs, list(servers), broken, empty, stopped)}",
        ]
    )


def _number(one: "Outcome") -> str:
    return f"{one.quantity.title} {one.number}" if one.number else f"no usable number, {one.why}"


def _paper(run: Run) -> str:
    if run.study.lacking:
        left = sittings.lacking(run.study.dataset)
        return f"none before the dataset is complete; missing: {', '.join(left) or 'nothing now'}"
    made = [path for path in map(Path, run.study.paper) if path.exists()]
    if not made:
        return "none yet; it is made once all chosen trials are measured"
    where = " and ".join(map(str, made))
    records = [trial.path / "trial.json" for trial in run.study.trials]
    newest = max((r.stat().st_mtime for r in records if r.exists()), default=0)
    older = min(path.stat().st_mtime for path in made) < newest
    return f"{where}{', of an earlier run' if older else ''}"


def _of_server(name: str, failure: failures.Failure) -> str:
    reason = next(filter(str.strip, failure.reason.splitlines()), "no reason recorded")
    reason = reason if len(reason) <= WIDTH else f"{reason[: WIDTH - 1]}…"
    what = f"{failure.outcome}, in {failure.number}"
    return f"{paths.folder(name)} {what}: {reason}; see {failure.folder}"


def _nothing(run: Run) -> str:
    now = run.standing
    if not now.total:
        return "nothing"
    left = f", {now.total - now.done} left" if not now.ended else ""
    return f"nothing; {now.done - now.failed} of {now.total} trials measured{left}"


def _next(
    run: Run, jobs: list[Job], servers: list[str], broken: list[str], empty: list["Outcome"],
    stopped: bool,
) -> str:  # fmt: skip
    study = run.study
    if broken:
        return f"remove the folder of that record; {study.command} then measures it again"
    if refused := [job for job in jobs if job.rule == JUDGE]:
        return f"{study.command} repeats {', '.join(Path(job.output[0]).name for job in refused)}"
    if jobs:
        return f"fix the cause in the log, then {study.command}: finished trials are kept"
    if servers:
        return (
            f"fix {paths.folder(servers[0])}, then {study.command}; to try it again unchanged, "
            f"first {failures.retry(study.dataset, study.choice)}"
        )
    if empty:
        first = "end other work on this machine" if empty[0].by_harness else "find the cause"
        folder = study.folder / empty[0].experiment / empty[0].server
        return f"{first}, remove {folder}; {study.command} then measures it again"
    if stopped or not run.standing.ended:
        return f"{study.command} continues where this run stopped"
    if study.lacking:
        left = [f"sitting={name}" for name in sittings.lacking(study.dataset)[:1]]
        typed = as_typed(" ".join(["snakemake --config", f"dataset={study.dataset}", *left]))
        effect = "continues" if left else "makes the paper"
        return f"commit data/{study.dataset}; then {typed} {effect}"
    if not Path(study.paper[0]).exists():
        return f"{study.command} makes the paper"
    return f"xdg-open {study.paper[0]}"


def _findings(study: Study) -> list[str]:
    """Return a line for each finding that the dataset has data for, and a line that sums them up.

    None without a report.
    """
    if study.whole or study.lacking or not Path(study.paper[0]).exists():
        return []
    from deathmatch.analysis import claims, findings

    results = claims.findings_of(study.dataset)
    shown = [one for one in results if one.standing != findings.NOT_MEASURED]
    lines = [f"  {one.finding.sentence}: {one.number}; {one.verdict}" for one in shown]
    return [*lines, f"{findings.headline(results)}."] if shown else []


def _alarms(study: Study) -> list[str]:
    """Return a sentence on each server that gave wrong answers in an experiment."""
    from deathmatch.analysis import card, outcomes

    held = [outcomes.labelled(study.dataset, experiment) for experiment in study.measured]
    return [f"{one.name}: {text}" for one in held for text in card.alarms(one).values()]


def _results(study: Study, known: Container[str] = ()) -> list["Outcome"]:
    """Return the results of servers chosen by name, and of those without any usable number.

    Servers `known` to have failed are left out. Raises UserError for a damaged table.
    """
    from deathmatch.analysis.outcomes import labelled, outcomes

    by_server: dict[str, list[Outcome]] = {}
    for experiment in study.measured:
        best = {}
        for outcome in outcomes(labelled(study.dataset, experiment)):
            best.setdefault(outcome.server, outcome)
        for server, outcome in best.items():
            by_server.setdefault(server, []).append(outcome)
    named = study.choice.servers or ()
    return [
        result
        for server in study.served
        if server not in known
        for result in by_server.get(server, [])
        if server in named or not any(other.number for other in by_server[server])
    ]
