rule notebook:
    input:
        lambda wildcards: STUDY.tables(wildcards.notebook),
        "notebooks/{notebook}.md",
        settings.PUBLISHED,
        settings.CODE,
    output:
        "paper/{dataset}/notebooks/{notebook}.ipynb",
    params:
        compare=STUDY.compare,
    shell:
        "python -m deathmatch.notebook notebooks/{wildcards.notebook}.md"
        " --dataset {wildcards.dataset} --compare='{params.compare}' --out {output}"


rule write_paper:
    input:
        notebooks=[f"paper/{STUDY.dataset}/notebooks/{name}.ipynb" for name in STUDY.notebooks],
        parts=settings.PAPER,
    output:
        STUDY.paper,
    params:
        dataset=STUDY.dataset,
    shell:
        "python -m deathmatch.paper --dataset {params.dataset} --notebooks {input.notebooks}"
        " --out paper/{params.dataset}"


rule paper:
    input:
        STUDY.paper,
