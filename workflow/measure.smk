rule trial:
    # The build is no input: it comes first by its priority, and a rebuild makes nothing stale.
    input:
        # Nor does a newer date: what a trial recorded of them is compared before any runs.
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
        # profiles/slurm says 0: each has a node of its own.
        **{INVOCATION.machine: 100},
    params:
        testbed=INVOCATION.settings.testbed,
    message:
        "Measure {wildcards.server} in {wildcards.experiment}, {wildcards.variant},"
        " trial {wildcards.n}"
    shell:
        "python -IS bin/forked trial --any-outcome --testbed {params.testbed:q}"
        ' "$(dirname {output:q})" > {log:q} 2>&1'


# Its job fails if the sitting is refused, and the run ends: the next one repeats it.
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
    # Before the next sitting's trials, and not beside one.
    priority: 1_000_000
    resources:
        **{INVOCATION.machine: 100},
    message:
        "Judge the sitting {wildcards.sitting}"
    shell:
        "python -IS bin/forked sitting {wildcards.dataset:q} {wildcards.sitting:q} > {log:q} 2>&1"


# Fails, after all is measured and published, if a server could not be measured.
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
        # Another choice may leave out what failed, or have more.
        options=INVOCATION.choice.options,
    message:
        "List the servers that could not be measured"
    shell:
        "python -IS bin/forked failures {wildcards.dataset:q} {params.options:q} > {log:q} 2>&1"
