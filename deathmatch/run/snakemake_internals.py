"""What is read or set inside Snakemake for want of public means: a function for each.

Both toolchains lock Snakemake 9.23.1; the tests of the workflow fail with one that differs here.
"""

from collections.abc import Iterable

from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.settings.enums import Quietness


def targets(workflow) -> set[str]:
    """Return the targets of the command line; Snakemake knows them once it collects the jobs."""
    return set(workflow.dag_settings.targets or ())


def make_due(workflow, files: Iterable[str]) -> None:
    """Have the jobs of these files run, whether or not the files exist and who made them.

    Without this, Snakemake does not measure a trial again whose server has changed, nor one that is
    gone while its table is there.
    """
    workflow.dag.forcefiles.update(files)


def go_through_no_hidden_job(workflow) -> None:
    """Have a dry run end once it knows what is due, where its log shows no job, as in our profile.

    Without this, a third of its time goes into resources and texts of jobs that nobody sees.
    """
    if {Quietness.RULES, Quietness.ALL} & {*(workflow.output_settings.quiet or ())}:
        JobScheduler.schedule = lambda scheduler: True


def start_without_delay(workflow) -> None:
    """Have the scheduler limit no rate of starts: the limiter wakes it each second.

    It does so for every job that has ended, until the run ends. Without this, Snakemake takes a
    quarter of a CPU after hundreds of trials, on the machine that measures.
    """
    workflow.scheduler.job_rate_limiter = None


def builds_first(workflow) -> None:
    """Have the scheduler submit no trial before every server is built, and all in their order.

    One machine has the resource `machine` for it; the nodes of a cluster run trials side by side,
    and a build is not an input of a trial, as a new one makes no trial stale. The logger gets each
    job that begins, which SLURM's executor does not report. Without this, trials of a cluster begin
    while servers are built, and the logger names none of them.
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
