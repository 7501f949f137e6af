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
  servers = import ./servers.nix { inherit pkgs toolchain clients; };
  # Those whose hashes are known: README.md says which are not, and they build only by name.
  confirmed = removeAttrs servers [
    "misultin"
    "webmachine"
  ];
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
  legacyPackages = { inherit (toolchain) erlangLibs; };
  checks =
    confirmed
    // ours
    // {
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
      full = furnished "nix" tools.measure confirmed;
      test = shell tools.test (variables "nix");
    };

  formatter = pkgs.nixfmt-tree;
}
