rule build:
    input:
        lambda wildcards: server.source_files(files.server(wildcards.server)),
        lambda wildcards: toolchain.recipes(wildcards.server),
    output:
        "build/servers/{server}/build.json",
    log:
        "build/logs/build/{server}.log",
    # Before all trials, so that no compiler disturbs one.
    priority: before_trials
    resources:
        # Two builds at a time, but with Nix one, as it needs more memory.
        machine=100 if nix.chosen() else 50,
    params:
        toolchain=toolchain.name(),
    message:
        "Build the server {wildcards.server}"
    shell:
        "bin/deathmatch build --record {wildcards.server:q} > {log:q} 2>&1"
