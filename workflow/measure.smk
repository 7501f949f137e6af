rule trial:
    # The build is not an input: its priority makes it first, and a rebuild makes no trial stale.
    input:
        # Nor does a newer date of the flake: a run compares the records with it before its trials.
        ancient(toolchain.FLAKE),
        nothing_of,
    output:
        "data/{dataset}/{experiment}/{server}/{variant}/{n}/trial.json",
    log:
        "build/logs/trial/{dataset}/{experiment}/{server}/{variant}/{n}.log",
    wildcard_constraints:
        dataset=INVOCATION.measured_dataset,
    priority: lambda wildcards: len(INVOCATION.study.order) - place_of(wildcards)[0]
    resources:
        # 0 in profiles/slurm, where each trial has a node of its own.
        **{INVOCATION.machine: 100},
    params:
        testbed=INVOCATION.settings.testbed,
    message:
        "Measure {wildcards.server} in {wildcards.experiment}, {wildcards.variant},"
        " trial {wildcards.n}"
    shell:
        "bin/deathmatch trial --any-outcome --testbed {params.testbed:q}"
        ' "$(dirname {output:q})" > {log:q} 2>&1'


# If the sitting is refused, its job fails and the run ends; the next run repeats the sitting.
rule sitting:
    input:
        lambda wildcards: trial_records(
            INVOCATION.of_dataset(wildcards.dataset).sittings.get(
                wildcards.sitting, ()
            )
        ),
    output:
        touch(f"{JUDGED}/{{dataset}}/{{sitting}}"),
    log:
        "build/logs/sitting/{dataset}/{sitting}.log",
    wildcard_constraints:
        dataset=INVOCATION.measured_dataset,
        sitting=r"[\w-]+",
    # Before the trials of the next sitting, and not during one.
    priority: 1_000_000
    resources:
        **{INVOCATION.machine: 100},
    message:
        "Judge the sitting {wildcards.sitting}"
    shell:
        "bin/deathmatch sitting {wildcards.dataset:q} {wildcards.sitting:q} > {log:q} 2>&1"


# It fails, once the paper is made, if a server could not be measured.
rule complete:
    input:
        lambda wildcards: INVOCATION.of_dataset(wildcards.dataset).trial_tables,
        lambda wildcards: INVOCATION.study.paper,
    output:
        touch("data/{dataset}/complete"),
    log:
        "build/logs/complete/{dataset}.log",
    wildcard_constraints:
        dataset=INVOCATION.measured_dataset,
    params:
        # With another choice, other servers may have failed.
        options=INVOCATION.choice.options,
    message:
        "List the servers that could not be measured"
    shell:
        "bin/deathmatch failures {wildcards.dataset:q} {params.options:q} > {log:q} 2>&1"
