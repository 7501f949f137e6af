# Five web-server benchmarks, replicated: measure a dataset and write its paper.
#
#   snakemake                                  the dataset of config/config.yaml
#   snakemake -n                               the matrix, and what of it is left to do
#   snakemake --config dataset=full            another dataset of config/datasets/
#   snakemake --config servers=yaws,tornado    these, in all that they serve; likewise experiments=
#   snakemake paper                            the paper of the committed dataset, measuring nothing
#   snakemake paper --config dataset=full      of another, as far as it is measured
#   snakemake --report report.html             what was made, as one page
#   snakemake retry                            try again what could not be built or measured
#   snakemake check_dataset --config dataset=mine    is it fit to be shown to others?
#   snakemake archive --config dataset=mine    its raw logs in one file for each experiment


include: "workflow/common.smk"


configfile: "config/config.yaml"


report: "workflow/report/study.rst"


INVOCATION = invocation.Invocation(workflow, config, DATASET_CHOSEN)
# One trial at a time on a testbed, whatever else runs here.
workflow.register_resource(INVOCATION.machine, 100)


wildcard_constraints:
    # Other datasets are only read.
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


# They are short, and print something for the user who waits.
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
