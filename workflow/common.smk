# What the rules share: the modules and functions that they use.
import gc

from deathmatch.builds import nix, toolchain
from deathmatch.errors import UserError
from deathmatch.plan import files, server
from deathmatch.run import cli_config, code_inputs, invocation, progress, study
from deathmatch.run.study import JUDGED

# A large matrix makes jobs that live to the end: looking for garbage is a tenth of a dry run.
gc.set_threshold(100_000)

# Before it reads the file, Snakemake has what the command line says.
DATASET_CHOSEN = "dataset" in config

try:
    cli_config.check_file()
except UserError as error:
    raise WorkflowError(str(error)) from None


def all_files(study):
    """Return all that a study makes."""
    return [
        *[f"build/servers/{name}/build.json" for name in study.built],
        # All are named, so that a trial that is gone is measured even where its table exists.
        *trial_records(study.trials),
        *judged(study, study.sittings),
        *paper_files(study),
        *([f"data/{study.dataset}/complete"] if study.trials else []),
    ]


def paper_files(study):
    """Return the paper, the explorer and the figures of a study; none before it is complete."""
    return (
        []
        if study.lacking
        else [*study.paper, study.explorer, f"build/report/{study.dataset}"]
    )


def trial_records(trials):
    return [f"{trial.folder}/trial.json" for trial in trials]


def judged(study, names):
    """Return the file of each sitting that says that it was kept."""
    return [f"{JUDGED}/{study.dataset}/{name}" for name in names]


def trials_of(wildcards):
    """Return the records of an experiment, and the files of its sittings."""
    study = INVOCATION.of_dataset(wildcards.dataset)
    own = [t for t in study.trials if t.experiment.name == wildcards.experiment]
    held = [
        name for name, trials in study.sittings.items() if not {*own}.isdisjoint(trials)
    ]
    return [*trial_records(own), *judged(study, held)]


def before_trials(wildcards):
    """Return a build's priority: the longest first, so that others are built meanwhile."""
    return 1_000_000 + round(progress.build_s(files.server(wildcards.server)))


def place_of(wildcards):
    """Return a trial's place in the order, and the trial."""
    return INVOCATION.trial(
        "data/{dataset}/{experiment}/{server}/{variant}/{n}".format(**wildcards)
    )


def nothing_of(wildcards):
    """Return no file, and make the trial due if its record does not fit what is asked for."""
    place_of(wildcards)
    return []
