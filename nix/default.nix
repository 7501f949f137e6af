# What the flake offers on one system.
{
  system,
  pkgs,
  nixpkgs-2022,
  nixpkgs-2014,
}:
let
  inherit (pkgs) lib;

  clients = import ./clients.nix pkgs;
  tools = import ./tools.nix {
    inherit pkgs;
    clients = clients.shell;
  };
  variables = import ./variables.nix;
  paperOf = import ./paper.nix {
    inherit pkgs;
    tools = tools.paper;
    variables = variables "nix";
  };
  paper = paperOf "";

  # Each with a `config`, so that it looks for none in the home directory.
  pkgs-2022 = import nixpkgs-2022 {
    inherit system;
    # nixpkgs may refuse Python 2.7, which gets no fixes any more; here it serves only loopback.
    config.allowInsecurePredicate =
      package: package.pname or "" == "python" && lib.hasPrefix "2.7." package.version;
  };
  # No other system of that time is still in use.
  old = lib.optionalAttrs (system == "x86_64-linux") {
    pkgs-2014 = import nixpkgs-2014 {
      inherit system;
      config = { };
    };
  };
  toolchain = import ./toolchain.nix { inherit pkgs pkgs-2022; } // old;
  servers = import ./servers.nix { inherit pkgs toolchain clients; };
  # Hosts that the sources of node-0.10 were downloaded from in 2014 no longer answer.
  current = removeAttrs servers [ "node-0.10" ];
  era = lib.optionalAttrs (old != { }) (import ./era.nix ({ inherit pkgs clients; } // old));

  shell = packages: environment: pkgs.mkShell ({ inherit packages; } // environment);
  # With servers in it already, so that none is built later.
  furnished =
    name: packages: offered:
    shell packages (
      variables name
      // {
        DEATHMATCH_SERVERS = "${pkgs.linkFarm "deathmatch-servers" offered}";
      }
    );
  ours = clients.packages // {
    inherit paper;
  };
in
{
  packages = servers // ours // { default = paper; };
  legacyPackages = {
    inherit (toolchain) erlangLibs unconfirmed;
  }
  // lib.optionalAttrs (old != { }) { facts = import ./facts.nix ({ inherit pkgs; } // old); };
  checks =
    current
    // ours
    // {
      nix-files = import ./nix-files.nix pkgs;
      paper-of-data = import ./paper-of-data.nix { inherit pkgs paper paperOf; };
    };

  devShells =
    builtins.mapAttrs (name: server: furnished "nix" tools.measure { ${name} = server; }) servers
    // builtins.mapAttrs (
      name: of: furnished "nix-${name}" (tools.measure ++ [ of.programs ]) of.servers
    ) era
    // {
      default = shell tools.measure (variables "nix");
      lab = shell tools.lab (variables "nix");
      full = furnished "nix" tools.measure current;
      test = shell tools.test (variables "nix");
    };

  formatter = pkgs.nixfmt-tree;
}
