# One environment for each server, by name. What is in it says `[packages] nix` of its server.toml,
# by attributes of nixpkgs; or, where that takes an expression, servers/<name>.nix: a function from
# the toolchain to the list. A server that takes what the toolchain lacks is left out.
{ pkgs, toolchain }:
let
  inherit (pkgs) lib;
  folder = ../servers;

  toml = name: folder + "/${name}/server.toml";
  attributes = name: (builtins.fromTOML (builtins.readFile (toml name))).packages.nix or [ ];
  named = builtins.filter (name: builtins.pathExists (toml name) && attributes name != [ ]) (
    builtins.attrNames (builtins.readDir folder)
  );
  written = map (lib.removeSuffix ".nix") (builtins.attrNames (builtins.readDir ./servers));

  # A module of Python is found only by an interpreter that was made with it.
  isModule = lib.hasPrefix "python3Packages.";
  find =
    name: set: attribute:
    builtins.foldl' (
      found: key:
      found.${key} or (throw "servers/${name}/server.toml, key packages.nix: nixpkgs has no ${attribute}")
    ) set (lib.splitString "." attribute);
  listed =
    name:
    let
      modules = builtins.filter isModule (attributes name);
      programs = builtins.filter (attribute: !isModule attribute) (attributes name);
      python = pkgs.python3.withPackages (
        python3Packages: map (find name { inherit python3Packages; }) modules
      );
    in
    _: map (find name pkgs) programs ++ lib.optional (modules != [ ]) python;

  lists =
    lib.genAttrs named listed // lib.genAttrs written (name: import (./servers + "/${name}.nix"));
  possible = lib.filterAttrs (
    _: list:
    builtins.all (argument: toolchain ? ${argument}) (builtins.attrNames (builtins.functionArgs list))
  ) lists;
in
builtins.mapAttrs (
  name: list:
  pkgs.buildEnv {
    name = "deathmatch-${name}";
    paths = list toolchain;
    # Programs, and Apache's modules beside them.
    pathsToLink = [
      "/bin"
      "/modules"
    ];
  }
) possible
