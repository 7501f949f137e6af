def place_of(wildcards):
    path = "data/{dataset}/{experiment}/{server}/{variant}/{n}".format(**wildcards)
    return STUDY.order[path]


def due(trials):
    """Return the records of trials, all that are not valid being due, whoever asks.

    Snakemake would miss a file that is gone only if it were asked for itself, and knows what a
    record was made of only if it made it.
    """
    if workflow.is_main_process and not ONLY_PAPER:
        left = [trial for trial in trials if trial not in STUDY.records]
        workflow.dag.forcefiles.update(f"{trial.path}/trial.json" for trial in left)
    return [f"{trial.path}/trial.json" for trial in trials]


if STUDY.trials and not ONLY_PAPER:

    rule trial:
        # The build is no input: it comes first by its priority, and a rebuild makes nothing stale.
        input:
            # Nor does a newer date: what a trial recorded of them is compared before any runs.
            ancient(toolchain.FLAKE),
        output:
            "data/{dataset}/{experiment}/{server}/{variant}/{n}/trial.json",
        log:
            "build/logs/trial/{dataset}/{experiment}/{server}/{variant}/{n}.log",
        priority: lambda wildcards: len(STUDY.order) - place_of(wildcards)[0]
        resources:
            # On a cluster each has a node of its own.
            **{STUDY.machine: 0 if ON_CLUSTER else 100},
        params:
            spec=lambda wildcards: place_of(wildcards)[1].spec_text(),
            testbed=STUDY.testbed,
        shell:
            "python -m deathmatch trial --any-outcome --testbed {params.testbed:q}"
            ' "$(dirname {output:q})"' + LOGGED

    # It exists only here, and Snakemake warns of a name that does not.
    localrules:
        complete,

    rule complete:
        input:
            [f"{STUDY.folder}/{name}/trials.parquet" for name in STUDY.measured],
            STUDY.paper,
        # Fails, after all is measured and published, if a server could not be measured.
        output:
            touch("data/{dataset}/complete"),
        log:
            "build/logs/complete/{dataset}.log",
        params:
            # Another choice may leave out what failed, or have more.
            options=STUDY.options,
        shell:
            "python -m deathmatch failures {wildcards.dataset:q} {params.options}" + LOGGED
