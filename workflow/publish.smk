# The verdicts on every claim: notebooks and the explorer read them.
rule ledger:
    input:
        lambda wildcards: INVOCATION.of_dataset(wildcards.decided).tables(),
        study.PUBLISHED,
        study.SERVERS,
        code_inputs.of_module("analysis.claims"),
    output:
        f"{study.LEDGERS}/{{decided}}.pickle",
    log:
        "build/logs/ledger/{decided}.log",
    wildcard_constraints:
        decided=r"[\w./-]+",
    # First, as the jobs that read it take longest.
    priority: 1
    message:
        "Decide the claims on {wildcards.decided}"
    shell:
        "bin/deathmatch ledger --dataset {wildcards.decided:q} --out {output:q}"
        " > {log:q} 2>&1"


rule notebook:
    input:
        lambda wildcards: INVOCATION.of_dataset(wildcards.dataset).tables(
            wildcards.notebook
        ),
        lambda wildcards: INVOCATION.study.ledgers_of(wildcards.notebook),
        "notebooks/{notebook}.md",
        study.PUBLISHED,
        lambda wildcards: code_inputs.of_notebook(f"notebooks/{wildcards.notebook}.md"),
    output:
        "paper/{dataset}/notebooks/{notebook}.ipynb",
    log:
        "build/logs/notebook/{dataset}/{notebook}.log",
    params:
        # Only for notebooks that depend on the ledger: for others it may be older than the tables.
        ledgers=lambda wildcards: (
            study.LEDGERS if INVOCATION.study.ledgers_of(wildcards.notebook) else ""
        ),
    message:
        "Run the notebook {wildcards.notebook}"
    shell:
        "DEATHMATCH_LEDGERS={params.ledgers:q}"
        " bin/deathmatch notebook notebooks/{wildcards.notebook:q}.md"
        " --dataset {wildcards.dataset:q} --out {output:q} > {log:q} 2>&1"


rule write_paper:
    input:
        code_inputs.of_module("paper.build"),
        notebooks=lambda wildcards: INVOCATION.of_dataset(
            wildcards.dataset
        ).executed_notebooks,
        parts=study.PAPER,
    output:
        report(
            "paper/{dataset}/deathmatch.html",
            caption="report/paper.rst",
            category="The paper",
        ),
        report(
            "paper/{dataset}/deathmatch.pdf",
            caption="report/paper.rst",
            category="The paper",
        ),
    log:
        "build/logs/write_paper/{dataset}.log",
    message:
        "Write the paper of {wildcards.dataset}"
    shell:
        "bin/deathmatch paper --dataset {wildcards.dataset:q}"
        " --notebooks {input.notebooks:q} --out paper/{wildcards.dataset:q} > {log:q} 2>&1"


# The report of a dataset that lacks a part of the study.
use rule write_paper as write_report with:
    output:
        report(
            "paper/{dataset}/report.html",
            caption="report/paper.rst",
            category="The report",
        ),
        report(
            "paper/{dataset}/report.pdf",
            caption="report/paper.rst",
            category="The report",
        ),
    log:
        "build/logs/write_report/{dataset}.log",
    message:
        "Write the report on {wildcards.dataset}"


rule explore:
    input:
        lambda wildcards: INVOCATION.of_dataset(wildcards.dataset).tables(),
        lambda wildcards: INVOCATION.study.ledgers,
        study.PUBLISHED,
        study.EXPLORER,
        study.PAPER,
        code_inputs.of_module("paper.explorer"),
    output:
        "paper/{dataset}/explore.html",
    log:
        "build/logs/explore/{dataset}.log",
    params:
        ledgers=study.LEDGERS,
        paper=lambda wildcards: Path(INVOCATION.study.paper[0]).stem,
    message:
        "Make the explorer of {wildcards.dataset}"
    shell:
        "DEATHMATCH_LEDGERS={params.ledgers:q}"
        " bin/deathmatch explore --dataset {wildcards.dataset:q}"
        " --out {output:q} --paper {params.paper:q} > {log:q} 2>&1"


# The figures for `snakemake --report`, which shows only outputs of rules.
rule report_figures:
    input:
        lambda wildcards: INVOCATION.of_dataset(wildcards.dataset).paper,
    output:
        report(
            directory("build/report/{dataset}"),
            patterns=["{label}.svg"],
            category="Figures",
            labels={"figure": "{label}"},
        ),
    log:
        "build/logs/report_figures/{dataset}.log",
    message:
        "Collect the figures of {wildcards.dataset} for the report"
    shell:
        # A dataset in which no server could be measured has no figures.
        "(rm -rf {output:q}.part && mkdir -p {output:q}.part figures/{wildcards.dataset:q} &&"
        " find figures/{wildcards.dataset:q} -name 'fig-*.svg' -exec cp -t {output:q}.part {{}} + &&"
        " mv {output:q}.part {output:q}) > {log:q} 2>&1"
