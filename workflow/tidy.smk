if not STUDY.frozen:

    rule tidy:
        input:
            code.of("data"),
            lambda wildcards: [
                f"{trial.path}/trial.json"
                for trial in STUDY.trials
                if trial.experiment.name == wildcards.experiment
            ],
        output:
            trials="data/{dataset}/{experiment}/trials.parquet",
            points="data/{dataset}/{experiment}/points.parquet",
            times="data/{dataset}/{experiment}/times.parquet",
            samples="data/{dataset}/{experiment}/samples.parquet",
            seconds="data/{dataset}/{experiment}/seconds.parquet",
        log:
            "build/logs/tidy/{dataset}/{experiment}.log",
        shell:
            "python -m deathmatch tidy data/{wildcards.dataset}/{wildcards.experiment}" + LOGGED
