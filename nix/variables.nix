# The environment variables of the shells and of the paper's recipe, by the toolchain's name.
# deathmatch/builds/nix.py and deathmatch/builds/toolchain.py read the first; Snakemake finds its
# logger through PYTHONPATH; every file is UTF-8, whatever the locale.
toolchain: {
  DEATHMATCH_TOOLCHAIN = toolchain;
  JUPYTER_CONFIG_PATH = "${../config/jupyter}";
  PYTHONNOUSERSITE = "1";
  PYTHONPATH = "${../workflow/plugins}";
  PYTHONUTF8 = "1";
}
