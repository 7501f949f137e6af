# The environment variables of the shells and of the paper's recipe, by the toolchain's name.
# deathmatch/hosts/nix.py and deathmatch/hosts/toolchain.py read the first; Snakemake finds its
# logger through the last.
toolchain: {
  DEATHMATCH_TOOLCHAIN = toolchain;
  JUPYTER_CONFIG_PATH = "${../config/jupyter}";
  PYTHONNOUSERSITE = "1";
  PYTHONPATH = "${../workflow/plugins}";
}
