"""One invocation of Snakemake: its study, and the preparations before its first job."""

import os
import sys
from functools import cached_property
from pathlib import Path

import snakemake
from snakemake.exceptions import WorkflowError

from deathmatch.errors import UserError
from deathmatch.hosts import sandbox
from deathmatch.plan import files, selection
from deathmatch.plan.dataset import PROBES
from deathmatch.plan.selection import Choice
from deathmatch.plan.trial import Trial
from deathmatch.run import (
    checkout,
    cli_config,
    cluster,
    exit_summary,
    sittings,
    snakemake_internals,
    subcommands,
)
from deathmatch.run.state import Run
from deathmatch.run.study import Study

# Passed to jobs on nodes, whose command lines name only the job.
ONLY_PAPER = "DEATHMATCH_ONLY_PAPER"


class Invocation:
    """An invocation of Snakemake; `latest` is this process's, for its logger."""

    latest: "Invocation | None" = None

    def __init__(self, workflow, config: dict, dataset_chosen: bool) -> None:
        """Check `config`; `dataset_chosen` says whether the command line names a dataset.

        Raises WorkflowError for a mistake that the user can fix.
        """
        self.workflow, self.config = workflow, config
        self.run: Run | None = None
        self.refusal: UserError | None = None
        Invocation.latest = self
        try:
            checkout.check_name(Path.cwd())
            checkout.check_writable()
            cli_config.check_words(sys.argv)
            self.settings = cli_config.settings(config)
        except UserError as error:
            self.refusal = error
            raise WorkflowError(str(error)) from None
        committed = not dataset_chosen and cli_config.committed()
        self.paper_dataset = cli_config.COMMITTED if committed else self.settings.dataset
        if workflow.remote_exec:
            # A job on a node runs no `onstart`.
            os.environ[sandbox.OWNER] = str(os.getpid())
            cluster.follow()

    @property
    def choice(self) -> Choice:
        """The chosen servers and experiments."""
        return selection.given(self.settings)

    @property
    def machine(self) -> str:
        """The resource that a trial takes completely: this machine's, or its testbed's."""
        bed = files.testbed(self.settings.testbed)
        sides = (bed.server, *bed.client_sides)
        here = bed.kind != "ssh" or any(side.ssh is None for side in sides)
        return "machine" if here else f"testbed_{bed.name.replace('-', '_')}"

    def experiments(self, searched: bool) -> str:
        """Return a pattern of the experiments whose trials search for a capacity, or of the others.

        Those that search have one more table. "-" if there are none.
        """
        spec = files.dataset(self.settings.dataset)
        names = [name for name in spec.experiments if (PROBES in spec.tables(name)) is searched]
        return "|".join(sorted(names)) or "-"

    @property
    def measured_dataset(self) -> str:
        """The dataset whose trials and tables may be made; "-" if it is frozen."""
        return "-" if files.dataset(self.settings.dataset).frozen else self.settings.dataset

    @cached_property
    def only_paper(self) -> bool:
        """Whether only the paper is made, from the trials measured so far."""
        if self.workflow.remote_exec:
            return bool(os.environ.get(ONLY_PAPER))
        targets = snakemake_internals.targets(self.workflow)
        return "paper" in targets and "all" not in targets

    @property
    def elsewhere(self) -> bool:
        """Whether jobs run on other machines, the nodes of a cluster."""
        workflow = self.workflow
        submits = workflow.resource_settings.nodes is not None if workflow.dryrun else False
        return workflow.remote_exec or not workflow.local_exec or submits

    @cached_property
    def study(self) -> Study:
        """The study, checked; the process that the user started also prints a summary.

        Raises WorkflowError for a mistake that the user can fix; the logger shows only `refusal`.
        """
        try:
            return self._study()
        except UserError as error:
            self.refusal = error
            raise WorkflowError(str(error)) from None

    def of_dataset(self, name: str) -> Study:
        """Return the study; raise WorkflowError if it is of another dataset than `name`."""
        if name != self.study.dataset:
            self.refusal = UserError(
                f"this run of snakemake makes the dataset {self.study.dataset}, not {name}",
                remedy=f"choose the other one: snakemake --config dataset={name}",
            )
            raise WorkflowError(str(self.refusal))
        return self.study

    def _study(self) -> Study:
        settings = self.settings
        if self.only_paper:
            settings = settings.model_copy(update={"dataset": self.paper_dataset})
        study = cli_config.study(settings, self.only_paper)
        if not self.workflow.is_main_process:
            return study
        checkout.check_writable(dataset=study.dataset)
        study.check_toolchain(here=not self.elsewhere)
        if not self.only_paper:
            study.check_clients()
        self.run = Run(study)
        if self.workflow.dryrun:
            snakemake_internals.go_through_no_hidden_job(self.workflow)
        if self.workflow.dryrun and study.trials:
            print(study.listing())
        if self.workflow.dryrun and files.dataset(study.dataset).sittings and not study.frozen:
            print(sittings.table(study.dataset))
        print(study.summary(), *study.notes(), sep="\n", file=sys.stderr)
        return study

    def trial(self, folder: str) -> tuple[int, Trial]:
        """Return a trial's place in the order, and the trial; make it due if it is not measured."""
        place, trial = self.study.order[folder]
        wanted = self.workflow.is_main_process and not self.only_paper
        if wanted and trial not in self.study.records:
            snakemake_internals.make_due(self.workflow, [f"{folder}/trial.json"])
        return place, trial

    def begin(self) -> None:
        """Lock the checkout and prepare it for the first job: the Snakefile's `onstart`.

        Raises WorkflowError if another run has locked it.
        """
        exit_summary.interrupted_in_order()
        try:
            checkout.hold()
        except UserError as error:
            raise WorkflowError(str(error)) from None
        # A trial's sandbox ends when this process does, even by SIGKILL.
        os.environ[sandbox.OWNER] = str(os.getpid())
        os.environ["DEATHMATCH_SNAKEMAKE"] = snakemake.__version__
        os.environ[ONLY_PAPER] = "1" if self.only_paper else ""
        if self.run is not None:
            checkout.make_folders(self.study.dataset)
            elsewhere = self.run.standing.ended or self.elsewhere or self.study.elsewhere
            if self.study.trials and not self.only_paper and not elsewhere:
                _wait()
        snakemake_internals.start_without_delay(self.workflow)
        if self.elsewhere:
            cluster.end_left(Path.cwd())
            cluster.lead()
            snakemake_internals.builds_first(self.workflow)
        else:
            checkout.keep_temporary()

    def ending(self, stopped: bool) -> str | None:
        """Return the text at the end of the run; `stopped` if it ended early."""
        return exit_summary.lines(self.run, stopped) if self.run else None


def _wait() -> None:
    """Wait for a quiet machine, and print that; raise WorkflowError if interrupted."""
    try:
        subcommands.wait_for_the_machine(lambda text: print(f"this run {text}", file=sys.stderr))
    except KeyboardInterrupt:
        raise WorkflowError("interrupted while waiting: nothing was measured") from None
