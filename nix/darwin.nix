# A shell for reading alone: `snakemake paper` and the notebooks.
pkgs:
pkgs.mkShell {
  packages = (import ./tools.nix { inherit pkgs; }).notebooks;
  DEATHMATCH_TOOLCHAIN = "nix";
  JUPYTER_CONFIG_PATH = "${../config/jupyter}";
  PYTHONNOUSERSITE = "1";
}
