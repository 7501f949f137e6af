def trials_of(wildcards):
    """Return the records of an experiment; one that is gone is measured whoever asks for tables."""
    trials = [trial for trial in STUDY.trials if trial.experiment.name == wildcards.experiment]
    records = [f"{trial.path}/trial.json" for trial in trials]
    # Snakemake would miss a file between two others only if it were asked for itself.
    workflow.dag.forcefiles.update(record for record in records if not os.path.exists(record))
    return records


if not STUDY.frozen:

    rule tidy:
        input:
            code.of("data"),
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
            experiment="|".join(STUDY.tidied) or "-",
        shell:
            "python -m deathmatch tidy data/{wildcards.dataset}/{wildcards.experiment}" + LOGGED
