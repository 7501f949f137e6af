# Five web-server benchmarks, replicated: measure a dataset and write its paper.
#
#   snakemake                                  the dataset of config/config.yaml
#   snakemake -n                               the matrix, and what of it is left to do
#   snakemake --config dataset=full            another dataset of config/datasets/
#   snakemake --config servers=yaws,tornado    these, in all that they serve; likewise experiments=
#   snakemake paper                            the paper of the committed dataset, measuring nothing
#   snakemake paper --config dataset=full      of another, as far as it is measured
#   snakemake --report report.html             what was made, with captions, as one page
#   snakemake retry                            try again what could not be built or measured
#   snakemake new_server --config name=mine    a folder to start from; likewise kind=websocket
#   snakemake check_dataset --config dataset=mine    is it fit to be shown to others?
#   snakemake archive --config dataset=mine    its raw logs in one file for each experiment
#   snakemake certify --config dataset=mine    checked strictly: checksums, citation, RO-Crate
import gc
import os
import sys
from pathlib import Path

import snakemake

from deathmatch.run import (
    cli_config,
    checkout,
    cluster,
    code_inputs,
    command_line,
    config_file,
    exit_summary,
    disk_space,
    study,
    untracked,
)
from deathmatch.run.state import Run
from deathmatch.builds import nix, toolchain
from deathmatch.hosts import node, sandbox
from deathmatch.builds import server_build
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

# Whether jobs are done on other machines, with --profile profiles/slurm: there too.
ON_CLUSTER = workflow.remote_exec or (
    workflow.resource_settings.nodes is not None and command_line.elsewhere(sys.argv[1:])
)

# The command line of a job on a node names only that job.
if not workflow.remote_exec:
    os.environ["DEATHMATCH_ONLY_PAPER"] = "1" if cli_config.only_paper(sys.argv[1:]) else ""
ONLY_PAPER = bool(os.environ.get("DEATHMATCH_ONLY_PAPER"))
CHOSEN = workflow.config_settings.overwrite_config or {}
if ONLY_PAPER and "dataset" not in CHOSEN and cli_config.committed():
    config["dataset"] = cli_config.COMMITTED

# They are about a dataset, and no run of it.
ASIDE = {"new_server", "check_dataset", "archive", "certify", "retry"} & set(sys.argv)

# A trial's sandbox ends when this process does, even by SIGKILL; on a node, when the process does
# that Snakemake runs there.
if workflow.is_main_process or workflow.remote_exec:
    os.environ[sandbox.OWNER] = str(os.getpid())
if workflow.remote_exec:
    cluster.follow()
os.environ["DEATHMATCH_SNAKEMAKE"] = snakemake.__version__

if workflow.is_main_process:
    # Of this process alone; first what Snakemake made before it came here.
    made = (workflow.sourcecache.runtime_cache, workflow._snakemake_tmp_dir)
    MADE = [one.name for one in made if one is not None]
    exit_summary.interrupted_early(MADE)

try:
    if workflow.is_main_process:
        checkout.check_name(Path.cwd())
        checkout.check_writable()
        if "--unlock" in sys.argv and (other := checkout.holder()):
            raise checkout.taken(other)
        RUN_LOCK = None if cli_config.dry_run(sys.argv[1:]) else checkout.hold()
        if ON_CLUSTER and RUN_LOCK is not None:
            cluster.end_left(Path.cwd())
            cluster.lead()
        if not ON_CLUSTER and RUN_LOCK is not None:
            MADE.append(checkout.temporary(MADE))
    STUDY = cli_config.study(config, ONLY_PAPER)
    if workflow.is_main_process and not cli_config.dry_run(sys.argv[1:]):
        checkout.check_writable(dataset=STUDY.dataset)
    if workflow.is_main_process and not ONLY_PAPER and not cli_config.dry_run(sys.argv[1:]):
        STUDY.forget_not_built()
        if RUN_LOCK is not None:
            checkout.forget_incomplete([f"{trial.path}/trial.json" for trial in STUDY.records])
    # Its own check tells more, and does not stop at the first.
    if workflow.is_main_process and "check_dataset" not in sys.argv:
        # Where nothing is measured, its tools do not matter.
        STUDY.check_toolchain(here=not ON_CLUSTER)
        if not ONLY_PAPER:
            STUDY.check_clients()
    # One trial at a time on a testbed, whatever else runs here.
    workflow.register_resource(STUDY.machine, 100)
    RUN = Run(STUDY) if workflow.is_main_process and not ASIDE else None
    if RUN and not cli_config.dry_run(sys.argv[1:]):
        disk_space.check(STUDY.disk_space)
except UserError as error:
    raise WorkflowError(str(error)) from None

if workflow.is_main_process:
    for handler in workflow.logger_manager.get_log_handlers():
        handler.run = RUN
        handler.locked = lambda: (other := checkout.holder()) and f"{checkout.taken(other)}"
        handler.ending = (lambda stopped: exit_summary.lines(RUN, stopped)) if RUN else None
    if RUN and cli_config.dry_run(sys.argv[1:]) and STUDY.trials:
        print(STUDY.listing())
    if RUN:
        said = [STUDY.summary(), disk_space.told(STUDY.disk_space), *STUDY.left_out()]
        print(*said, sep="\n", file=sys.stderr)


onstart:
    exit_summary.interrupted_in_order()
    if not ASIDE:
        untracked.make_folders(STUDY.dataset)
    # Snakemake 9's limiter of starts wakes the scheduler once more each second for every job that
    # has ended, until the run ends: after hundreds of trials a quarter of a CPU, beside the next.
    workflow.scheduler.job_rate_limiter = None
    if ON_CLUSTER:
        cluster.steer(workflow.scheduler)


# For the captions of `snakemake --report`, which can read no file. Snakemake writes `config` as JSON.
if any(word.startswith("--report") for word in sys.argv):
    config["captions"] = captions.captions(STUDY.dataset)


wildcard_constraints:
    # No other is made here: one to compare with is only read.
    dataset=STUDY.dataset,
    experiment=r"[\w-]+",
    server=r"[\w.-]+",
    n=r"\d+",


# Kept, and shown as it comes: by the live view of a terminal, else by tee, which an interrupt does
# not end before the command has said all.
LIVE = any([handler.live() for handler in workflow.logger_manager.get_log_handlers()])
LOGGED = " >{log:q} 2>&1" if LIVE else " 2>&1 | tee -i {log:q}"


# They are short, and what they say is for whoever waits.
localrules:
    all,
    archive,
    certify,
    check_dataset,
    new_server,
    paper,
    report_figures,
    retry,


rule all:
    default_target: True
    input:
        [f"build/servers/{name}/build.json" for name in STUDY.built],
        # All named here, so that one that is missing is measured even where its table exists.
        lambda wildcards: [f"{trial.path}/trial.json" for trial in STUDY.trials],
        STUDY.paper,
        STUDY.explorer,
        f"build/report/{STUDY.dataset}",
        f"data/{STUDY.dataset}/complete" if STUDY.trials else [],


# What could not be built or answered wrongly is kept as a result until its sources change.
rule retry:
    log:
        "build/logs/retry.log",
    shell:
        "python -m deathmatch failures {STUDY.dataset:q} {STUDY.options} --retry" + LOGGED


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
        "python -m deathmatch check {params.dataset:q} {STUDY.options}" + LOGGED


rule archive:
    log:
        "build/logs/archive.log",
    params:
        dataset=STUDY.dataset,
    shell:
        "python -m deathmatch archive {params.dataset:q} {STUDY.options}" + LOGGED


rule certify:
    log:
        "build/logs/certify.log",
    params:
        dataset=STUDY.dataset,
    shell:
        "python -m deathmatch certify {params.dataset:q}" + LOGGED


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
