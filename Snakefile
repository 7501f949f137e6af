# Five web-server benchmarks, replicated: measure a dataset and write its paper.
#
#   snakemake                                  the dataset of config/config.yaml
#   snakemake -n                               the matrix, and what of it is left to do
#   snakemake --config dataset=full            another dataset of config/datasets/
#   snakemake --config servers=yaws,tornado    only these; likewise experiments=
#   snakemake paper                            the paper of the committed dataset, measuring nothing
#   snakemake paper --config dataset=full      the paper of another
#   snakemake --report report.html             what was made, with captions, as one page
#   snakemake retry                            try again what could not be built or measured
#   snakemake new_server --config name=mine    a folder to start from; likewise kind=websocket
#   snakemake check_dataset --config dataset=mine    is it fit to be shown to others?
#   snakemake archive --config dataset=mine    its raw logs in one file for each experiment
import gc
import os
import sys
from pathlib import Path

import snakemake

from deathmatch.control import code, command_line, config_file, progress, study, untracked
from deathmatch.hosts import nix, sandbox, toolchain
from deathmatch.hosts import server_build
from deathmatch.paper import captions
from deathmatch.plan import files, sources
from deathmatch.errors import UserError

try:
    config_file.check(Path("config/config.yaml"))
except UserError as error:
    raise WorkflowError(str(error)) from None


configfile: "config/config.yaml"


report: "workflow/report/study.rst"


# What a large matrix makes of jobs all lives to the end: looking for garbage is a tenth of a dry run.
gc.set_threshold(100_000)

if study.only_paper(sys.argv[1:], workflow.config_settings.overwrite_config):
    config["dataset"] = study.COMMITTED

# A trial's sandbox ends when this process does, even by SIGKILL.
if workflow.is_main_process:
    os.environ["DEATHMATCH_OWNER"] = str(os.getpid())
    RUN_LOCK = sandbox.clear_dead_lock()
os.environ["DEATHMATCH_SNAKEMAKE"] = snakemake.__version__

try:
    STUDY = study.check(config)
    if workflow.is_main_process and not study.dry_run(sys.argv[1:]):
        STUDY.forget_not_built()
    # Its own check tells more, and does not stop at the first.
    if workflow.is_main_process and "check_dataset" not in sys.argv:
        STUDY.check_toolchain()
        STUDY.check_clients()
except UserError as error:
    raise WorkflowError(str(error)) from None

if workflow.is_main_process:
    for handler in workflow.logger_manager.get_log_handlers():
        handler.finished = progress.Progress(STUDY.trials, STUDY.records, STUDY.testbed).finished
    if study.dry_run(sys.argv[1:]) and STUDY.trials:
        print(STUDY.listing())
    print(STUDY.summary(), *STUDY.left_out(), sep="\n", file=sys.stderr)


onstart:
    if not {"new_server", "check_dataset", "archive", "retry"} & set(sys.argv):
        untracked.make_folders(STUDY.dataset)
    # Snakemake 9's limiter of starts wakes the scheduler once more each second for every job that
    # has ended, until the run ends: after hundreds of trials a quarter of a CPU, beside the next.
    workflow.scheduler.job_rate_limiter = None


# For the captions of `snakemake --report`, which can read no file. Snakemake writes `config` as JSON.
if any(word.startswith("--report") for word in sys.argv):
    config["captions"] = captions.captions(STUDY.dataset)


wildcard_constraints:
    # No other is made here: one to compare with is only read.
    dataset=STUDY.dataset,
    experiment=r"[\w-]+",
    server=r"[\w.-]+",
    n=r"\d+",


# Shown as it comes, and kept. An interrupt ends the command, not what it still has to say.
LOGGED = " 2>&1 | tee -i {log:q}"


rule all:
    default_target: True
    input:
        [f"build/servers/{name}/build.json" for name in STUDY.built],
        # All named here, so that one that is missing is measured even where its table exists.
        [f"{trial.path}/trial.json" for trial in STUDY.trials],
        STUDY.paper,
        f"build/report/{STUDY.dataset}",
        f"data/{STUDY.dataset}/complete" if STUDY.trials else [],


# What could not be built or answered wrongly is kept as a result until its sources change.
rule retry:
    log:
        "build/logs/retry.log",
    shell:
        "python -m deathmatch failures {STUDY.dataset:q} --retry" + LOGGED


rule new_server:
    log:
        "build/logs/new_server.log",
    params:
        name=config.get("name", ""),
        kind=config.get("kind", ""),
    shell:
        "python -m deathmatch new-server {params.name:q} --kind={params.kind:q}" + LOGGED


rule check_dataset:
    log:
        "build/logs/check_dataset.log",
    params:
        dataset=STUDY.dataset,
    shell:
        "python -m deathmatch check {params.dataset:q}" + LOGGED


rule archive:
    log:
        "build/logs/archive.log",
    params:
        dataset=STUDY.dataset,
    shell:
        "python -m deathmatch archive {params.dataset:q}" + LOGGED


include: "workflow/build.smk"
include: "workflow/measure.smk"
include: "workflow/tidy.smk"
include: "workflow/publish.smk"


if workflow.is_main_process:
    try:
        command_line.check(
            command_line.targets(sys.argv[1:]), [rule.name for rule in workflow.rules]
        )
    except UserError as error:
        raise WorkflowError(str(error)) from None
