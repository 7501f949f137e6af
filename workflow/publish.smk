rule notebook:
    input:
        lambda wildcards: STUDY.tables(wildcards.notebook),
        "notebooks/{notebook}.md",
        study.PUBLISHED,
        study.INSTRUMENTS,
        code_inputs.of("paper"),
    output:
        "paper/{dataset}/notebooks/{notebook}.ipynb",
    log:
        "build/logs/notebook/{dataset}/{notebook}.log",
    params:
        compare=STUDY.compare,
    shell:
        "python -m deathmatch notebook notebooks/{wildcards.notebook:q}.md"
        " --dataset {wildcards.dataset:q} --compare={params.compare:q} --out {output:q}" + LOGGED


rule write_paper:
    input:
        notebooks=[f"paper/{STUDY.dataset}/notebooks/{name}.ipynb" for name in STUDY.notebooks],
        parts=study.PAPER,
    output:
        report(STUDY.paper[0], caption="report/paper.rst", category="The paper"),
        report(STUDY.paper[1], caption="report/paper.rst", category="The paper"),
    log:
        "build/logs/write_paper.log",
    params:
        dataset=STUDY.dataset,
    shell:
        "python -m deathmatch paper --dataset {params.dataset:q} --notebooks {input.notebooks:q}"
        " --out paper/{params.dataset:q}" + LOGGED


rule explore:
    input:
        STUDY.tables_of(files.names("experiment")),
        study.PUBLISHED,
        study.EXPLORER,
        study.PAPER,
        code_inputs.of("paper"),
    output:
        STUDY.explorer,
    log:
        "build/logs/explore.log",
    params:
        dataset=STUDY.dataset,
        compare=STUDY.compare,
    shell:
        "python -m deathmatch explore --dataset {params.dataset:q} --compare={params.compare:q}"
        " --out {output:q}" + LOGGED


# The figures for `snakemake --report`, which shows only what a rule has made.
rule report_figures:
    input:
        STUDY.paper,
    output:
        report(
            directory("build/report/{dataset}"),
            patterns=["{label}.svg"],
            caption="report/figure.rst",
            category="Figures",
            labels={"figure": "{label}"},
        ),
    log:
        "build/logs/report_figures/{dataset}.log",
    shell:
        # A dataset in which nothing could be measured has none.
        "rm -rf {output:q}.part && mkdir -p {output:q}.part figures/{wildcards.dataset:q} && "
        "find figures/{wildcards.dataset:q} -name 'fig-*.svg' -exec cp -t {output:q}.part {{}} + && "
        "mv {output:q}.part {output:q}" + LOGGED


rule paper:
    input:
        STUDY.paper,
        STUDY.explorer,
        f"build/report/{STUDY.dataset}",
