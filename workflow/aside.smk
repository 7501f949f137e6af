# Targets for a dataset that measure nothing.


# The record of a server that could not be measured is a result until the server's sources change.
rule retry:
    log:
        "build/logs/retry.log",
    params:
        dataset=INVOCATION.settings.dataset,
        options=INVOCATION.choice.options,
    message:
        "Remove the records of what could not be built or measured"
    shell:
        "bin/deathmatch failures {params.dataset:q} {params.options:q} --retry > {log:q} 2>&1"


rule check_dataset:
    log:
        "build/logs/check_dataset.log",
    params:
        dataset=INVOCATION.settings.dataset,
        options=INVOCATION.choice.options,
    message:
        "Check the dataset {params.dataset}"
    shell:
        "bin/deathmatch check {params.dataset:q} {params.options:q} > {log:q} 2>&1"


rule archive:
    log:
        "build/logs/archive.log",
    params:
        dataset=INVOCATION.settings.dataset,
        options=INVOCATION.choice.options,
    message:
        "Archive the raw logs of {params.dataset}"
    shell:
        "bin/deathmatch archive {params.dataset:q} {params.options:q} > {log:q} 2>&1"
