ORDER = {str(trial.path): (place, trial) for place, trial in enumerate(STUDY.trials)}


def trial_of(wildcards):
    path = "data/{dataset}/{experiment}/{server}/{variant}/{n}".format(**wildcards)
    return ORDER[path]


if STUDY.trials:

    rule trial:
        input:
            # Its sources are in the spec: a rebuild alone makes no trial stale.
            ancient("build/servers/{server}/build.json"),
        output:
            "data/{dataset}/{experiment}/{server}/{variant}/{n}/trial.json",
        priority: lambda wildcards: len(ORDER) - trial_of(wildcards)[0]
        resources:
            machine=100,
        params:
            spec=lambda wildcards: matrix.spec_text(trial_of(wildcards)[1]),
            folder=lambda wildcards, output: os.path.dirname(output[0]),
            testbed=STUDY.testbed,
        shell:
            "python -m deathmatch.trial --testbed {params.testbed} {params.folder:q}"

    rule complete:
        input:
            [f"{path}/trial.json" for path in ORDER],
            STUDY.paper,
        # Fails, after all is measured and published, if a server could not be measured.
        output:
            touch("data/{dataset}/complete"),
        shell:
            "python -m deathmatch.complete {wildcards.dataset}"
