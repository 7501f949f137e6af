rule tidy:
    input:
        code_inputs.of_module("data.tidy"),
        trials_of,
    output:
        trials="data/{dataset}/{experiment}/trials.parquet",
        points="data/{dataset}/{experiment}/points.parquet",
        times="data/{dataset}/{experiment}/times.parquet",
        samples="data/{dataset}/{experiment}/samples.parquet",
        seconds="data/{dataset}/{experiment}/seconds.parquet",
    log:
        "build/logs/tidy/{dataset}/{experiment}.log",
    wildcard_constraints:
        dataset=INVOCATION.measured_dataset,
        experiment=INVOCATION.experiments(searched=False),
    message:
        "Make tables of the trials of {wildcards.experiment}"
    shell:
        "bin/deathmatch tidy data/{wildcards.dataset:q}/{wildcards.experiment:q}"
        " > {log:q} 2>&1"


# Trials that searched for a capacity have one table more.
use rule tidy as tidy_searched with:
    output:
        trials="data/{dataset}/{experiment}/trials.parquet",
        points="data/{dataset}/{experiment}/points.parquet",
        times="data/{dataset}/{experiment}/times.parquet",
        samples="data/{dataset}/{experiment}/samples.parquet",
        seconds="data/{dataset}/{experiment}/seconds.parquet",
        probes="data/{dataset}/{experiment}/probes.parquet",
    wildcard_constraints:
        dataset=INVOCATION.measured_dataset,
        experiment=INVOCATION.experiments(searched=True),
