# What the flake offers on one system.
{
  system,
  pkgs,
  nixpkgs-2022,
  nixpkgs-2014,
  source,
}:
let
  inherit (pkgs) lib;

  httperf = import ./httperf.nix pkgs;
  wsload = import ./wsload.nix pkgs;
  tools = import ./tools.nix { inherit pkgs httperf wsload; };
  paper = import ./paper.nix { inherit pkgs tools source; };

  # An empty `config`, so that they look for none in the home directory.
  imported = {
    inherit system;
    config = { };
  };
  # No other system of that time is still in use.
  old = lib.optionalAttrs (system == "x86_64-linux") {
    pkgs-2014 = import nixpkgs-2014 imported;
  };
  toolchain =
    import ./toolchain.nix {
      inherit pkgs;
      pkgs-2022 = import nixpkgs-2022 imported;
    }
    // old;
  servers = import ./servers.nix { inherit pkgs toolchain; };
  # Those whose hashes are known: README.md says which are not, and they build only by name.
  confirmed = removeAttrs servers [
    "misultin"
    "webmachine"
  ];
  era = lib.optionalAttrs (old != { }) (import ./era.nix ({ inherit pkgs; } // old));

  # What the runner reads; see `environment` in deathmatch/server.py.
  variables = name: offered: {
    DEATHMATCH_TOOLCHAIN = name;
    DEATHMATCH_SERVERS = "${pkgs.linkFarm "deathmatch-servers" offered}";
    JUPYTER_CONFIG_PATH = "${../config/jupyter}";
    PYTHONNOUSERSITE = "1";
  };
  shell = packages: environment: pkgs.mkShell ({ inherit packages; } // environment);

  snakemake = pkgs.writeShellApplication {
    name = "deathmatch";
    runtimeInputs = tools;
    runtimeEnv = variables "nix" confirmed;
    text = ''exec snakemake "$@"'';
  };
  ours = { inherit httperf paper wsload; };
in
{
  packages = servers // ours // { default = paper; };
  legacyPackages = { inherit (toolchain) erlangLibs; };
  checks = confirmed // ours;

  devShells =
    builtins.mapAttrs (name: server: shell tools (variables "nix" { ${name} = server; })) servers
    // builtins.mapAttrs (
      name: of: shell (tools ++ [ of.programs ]) (variables "nix-${name}" of.servers)
    ) era
    // {
      default = shell tools (variables "nix" confirmed);
    };

  apps.default = {
    type = "app";
    program = lib.getExe snakemake;
    meta.description = "Snakemake with the study's tools: measures a dataset and writes its paper";
  };
  formatter = pkgs.nixfmt-tree;
}
