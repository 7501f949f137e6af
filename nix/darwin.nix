# A shell for reading alone: `snakemake paper` and the notebooks.
pkgs:
pkgs.mkShell (
  {
    packages = (import ./tools.nix { inherit pkgs; }).notebooks;
  }
  // import ./variables.nix "nix"
)
