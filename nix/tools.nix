# What runs, reads or tests the study, apart from the servers: three lists of packages, each with
# one Python of its own. wsload is not among them: its 118 crates are fetched when a dataset has
# an experiment that needs it, with the package of the server ws-null.
pkgs:
let
  # The modules that deathmatch/, the Snakefile and the notebooks import, and JupyterLab.
  modules =
    packages: with packages; [
      altair
      great-tables
      ipykernel
      ipython
      jsonschema
      jupyterlab
      jupytext
      nbformat
      numpy
      pandera
      papermill
      polars
      psutil
      pyarrow
      pypandoc
      pyyaml
      scipy
      snakemake
      traitlets
      typst
      vl-convert-python
      websockets
    ];
  testModules =
    packages: with packages; [
      hypothesis
      playwright
      pytest
      pytest-xdist
    ];

  client = name: import (./. + "/${name}.nix") pkgs;
  load = [
    (client "httperf")
    (client "roundtrip")
    pkgs.iproute2
    pkgs.procps
    pkgs.strace
    pkgs.util-linux
  ];
in
{
  paper = [
    (pkgs.python3.withPackages modules)
    pkgs.git
  ];

  measure = [
    (pkgs.python3.withPackages modules)
    pkgs.git
  ]
  ++ load;

  test = [
    (pkgs.python3.withPackages (packages: modules packages ++ testModules packages))
    pkgs.cargo
    pkgs.chromium
    pkgs.deadnix
    pkgs.gcc
    pkgs.git
    pkgs.nixfmt
    pkgs.poppler-utils
    pkgs.ruff
    pkgs.rustc
    pkgs.snakefmt
  ]
  ++ load;
}
