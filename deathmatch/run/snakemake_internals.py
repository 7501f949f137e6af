"""Access to Snakemake's internals, where it has no public interface: one function for each.

Both toolchains lock Snakemake 9.23.1; the workflow's tests fail with a version that differs here.
"""

from collections.abc import Iterable

from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.settings.enums import Quietness


def targets(workflow) -> set[str]:
    """Return the targets of the command line; they are known once Snakemake collects the jobs."""
    return set(workflow.dag_settings.targets or ())


def make_due(workflow, files: Iterable[str]) -> None:
    """Make the jobs of these files run, even if the files exist.

    Without this, Snakemake would not repeat a trial whose server has changed, nor one that was
    removed while its table exists.
    """
    workflow.dag.forcefiles.update(files)


def go_through_no_hidden_job(workflow) -> None:
    """End a dry run once the due jobs are known, if its log shows no jobs, as in our profile.

    Without this, a third of its time is spent on resources and messages of jobs that are not shown.
    """
    if {Quietness.RULES, Quietness.ALL} & {*(workflow.output_settings.quiet or ())}:
        JobScheduler.schedule = lambda scheduler: True


def start_without_delay(workflow) -> None:
    """Remove the scheduler's limiter of job starts, which wakes it each second.

    It does so for every job that has ended, until the run ends: after hundreds of trials, Snakemake
    would use a quarter of a CPU on the machine that measures.
    """
    workflow.scheduler.job_rate_limiter = None


def builds_first(workflow) -> None:
    """On a cluster, submit no trial before every server is built, and jobs by their priority.

    On one machine the resource `machine` has this effect. A build cannot be an input of a trial,
    as a rebuild would make the trial stale. Each job that begins is also logged, as SLURM's
    executor does not report it.
    """
    scheduler = workflow.scheduler
    select = scheduler.job_selector

    def selected(ready):
        builds = any(job.rule.name == "build" for job in (*ready, *scheduler.running))
        if builds:
            ready = {job for job in ready if job.rule.name != "trial"}
        chosen = sorted(select(ready) if ready else [], key=lambda job: -job.priority)
        for job in chosen:
            if not job.is_local:
                job.log_info()
        return chosen

    scheduler.job_selector = selected
