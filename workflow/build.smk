rule build:
    input:
        lambda wildcards: matrix.sources(wildcards.server),
    output:
        "build/servers/{server}/build.json",
    # Before any trial, so that no compiler disturbs one.
    priority: 1_000_000
    resources:
        machine=50,
    params:
        toolchain=toolchain.name(),
    shell:
        "python -m deathmatch.server {wildcards.server}"
