# A shell for the paper alone: `snakemake paper` and the notebooks.
pkgs:
pkgs.mkShell {
  packages = (import ./tools.nix pkgs).paper;
  DEATHMATCH_TOOLCHAIN = "nix";
  JUPYTER_CONFIG_PATH = "${../config/jupyter}";
  PYTHONNOUSERSITE = "1";
}
