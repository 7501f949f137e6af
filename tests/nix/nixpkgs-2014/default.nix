# The recorded packages of nixpkgs of March 2014, as derivations that build nothing.
{ system, config }:
assert system == "x86_64-linux" && config == { };
let
  recorded = builtins.fromJSON (builtins.readFile ./recorded.json);
  package =
    name: tools:
    derivation {
      inherit name system;
      builder = "/bin/sh";
    }
    // {
      inherit tools;
      override = { erlang }: package "${name}-${erlang.name}" tools;
    };
in
builtins.mapAttrs package recorded.evaluated.packages
