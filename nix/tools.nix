# Everything that runs, reads or tests the study, apart from the servers: a list of packages.
{
  pkgs,
  httperf,
  wsload,
}:
let
  python = pkgs.python3.withPackages (
    packages: with packages; [
      altair
      great-tables
      hypothesis
      ipykernel
      ipython
      jsonschema
      jupyterlab
      jupytext
      nbformat
      numpy
      pandera
      papermill
      playwright
      polars
      psutil
      pyarrow
      pypandoc
      pytest
      pyyaml
      rich
      scipy
      traitlets
      typst
      vl-convert-python
      websockets
      # A module, not only a program: the Snakefile imports from deathmatch/.
      (toPythonModule pkgs.snakemake)
    ]
  );
in
[
  python
  httperf
  wsload
  pkgs.cargo
  pkgs.chromium
  pkgs.deadnix
  pkgs.gcc
  pkgs.git
  pkgs.iproute2
  pkgs.nixfmt
  pkgs.poppler-utils
  pkgs.procps
  pkgs.ruff
  pkgs.rustc
  pkgs.snakefmt
  pkgs.strace
  pkgs.util-linux
]
