def trials_of(wildcards):
    """Return the records of an experiment."""
    return due([trial for trial in STUDY.trials if trial.experiment.name == wildcards.experiment])


if not STUDY.frozen:

    rule tidy:
        input:
            code_inputs.of("data"),
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
            # Of the others there are tables alone.
            experiment="|".join(sorted({*STUDY.tidied} - {*STUDY.searched})) or "-",
        shell:
            "python -m deathmatch tidy data/{wildcards.dataset:q}/{wildcards.experiment:q}" + LOGGED

    # Of trials that searched for a capacity there is one table more.
    use rule tidy as tidy_searched with:
        output:
            trials="data/{dataset}/{experiment}/trials.parquet",
            points="data/{dataset}/{experiment}/points.parquet",
            times="data/{dataset}/{experiment}/times.parquet",
            samples="data/{dataset}/{experiment}/samples.parquet",
            seconds="data/{dataset}/{experiment}/seconds.parquet",
            probes="data/{dataset}/{experiment}/probes.parquet",
        wildcard_constraints:
            experiment="|".join(STUDY.searched) or "-",
