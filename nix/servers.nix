# One environment for each server, by name: servers/<name>.nix is a function from the toolchain to
# the list of packages in it. A server that takes what the toolchain lacks is left out.
{ pkgs, toolchain }:
let
  inherit (pkgs) lib;
  names = map (lib.removeSuffix ".nix") (builtins.attrNames (builtins.readDir ./servers));
  lists = lib.genAttrs names (name: import (./servers + "/${name}.nix"));
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
