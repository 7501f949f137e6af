# Five web-server benchmarks, replicated: measure a dataset and write its paper.
#
#   snakemake                                  the dataset of config/config.yaml
#   snakemake -n                               the trials, and how many are left to measure
#   snakemake --config dataset=full            another dataset of config/datasets/
#   snakemake --config servers=yaws,tornado    only these servers; likewise experiments=
#   snakemake paper                            the paper of the committed dataset, measuring nothing
#   snakemake paper --config dataset=full      the paper of another one, as far as it is measured
#   snakemake --report report.html             a page with everything that was made
#   snakemake retry                            remove records of failures, to try these again
#   snakemake check_dataset --config dataset=mine    check that it can be published
#   snakemake archive --config dataset=mine    pack its raw logs, one file for each experiment


include: "workflow/common.smk"


configfile: "config/config.yaml"


report: "workflow/report/study.rst"


INVOCATION = invocation.Invocation(workflow, config, DATASET_CHOSEN)
# One trial at a time on a testbed, whatever the number of cores.
workflow.register_resource(INVOCATION.machine, 100)


wildcard_constraints:
    # No other dataset is written.
    dataset="|".join({INVOCATION.settings.dataset, INVOCATION.paper_dataset}),
    experiment=r"[\w-]+",
    server=r"[\w.-]+",
    n=r"\d+",


onstart:
    INVOCATION.begin()


include: "workflow/build.smk"
include: "workflow/measure.smk"
include: "workflow/tidy.smk"
include: "workflow/publish.smk"
include: "workflow/aside.smk"


# On a cluster they run here: they are short, and the user waits for their output.
localrules:
    all,
    archive,
    check_dataset,
    complete,
    paper,
    report_figures,
    retry,


rule all:
    default_target: True
    input:
        lambda wildcards: all_files(INVOCATION.study),


rule paper:
    input:
        lambda wildcards: paper_files(INVOCATION.study),
