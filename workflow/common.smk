# The modules and functions that the rules use.
import gc

from deathmatch.builds import nix, toolchain
from deathmatch.errors import UserError
from deathmatch.plan import files, server
from deathmatch.run import cli_config, code_inputs, invocation, progress, study
from deathmatch.run.study import JUDGED

# The jobs of a large matrix live to the end: garbage collection would take a tenth of a dry run.
gc.set_threshold(100_000)

# At this point Snakemake has read the command line, but not the configuration file.
DATASET_CHOSEN = "dataset" in config

try:
    cli_config.check_file()
except UserError as error:
    raise WorkflowError(str(error)) from None


def all_files(study):
    """Return all files that a study makes."""
    return [
        *[f"build/servers/{name}/build.json" for name in study.built],
        # All trials, so that one that was removed is measured even if its table exists.
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
    """Return the files in JUDGED of these sittings, which exist once these are accepted."""
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
    """Return a build's priority: the longest first, so that others run at the same time."""
    return 1_000_000 + round(progress.build_s(files.server(wildcards.server)))


def place_of(wildcards):
    """Return a trial's place in the order, and the trial."""
    return INVOCATION.trial(
        "data/{dataset}/{experiment}/{server}/{variant}/{n}".format(**wildcards)
    )


def nothing_of(wildcards):
    """Return no file, and make the trial due if it is not measured as specified now."""
    place_of(wildcards)
    return []
