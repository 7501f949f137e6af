rule build:
    input:
        lambda wildcards: server.source_files(files.server(wildcards.server)),
        lambda wildcards: toolchain.recipes(wildcards.server),
    output:
        "build/servers/{server}/build.json",
    log:
        "build/logs/build/{server}.log",
    # Before any trial, so that no compiler disturbs one.
    priority: before_trials
    resources:
        # Nix evaluates and builds with more memory than two at a time may have.
        machine=100 if nix.chosen() else 50,
    params:
        toolchain=toolchain.name(),
    message:
        "Build the server {wildcards.server}"
    shell:
        "python -IS bin/forked build --record {wildcards.server:q} > {log:q} 2>&1"
