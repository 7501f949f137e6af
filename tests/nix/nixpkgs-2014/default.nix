# Packages of nixpkgs of March 2014 that facts.json names, as derivations that build nothing.
{ system, config }:
assert system == "x86_64-linux" && config == { };
let
  programs = builtins.fromJSON (builtins.readFile ./programs.json);
  facts = (builtins.fromJSON (builtins.readFile ./facts.json)).nixpkgs-2014.names;
  package =
    attribute: tools:
    derivation {
      name = facts.${attribute};
      inherit system;
      builder = "/bin/sh";
    }
    // {
      inherit tools;
    }
    // (
      if attribute == "yaws" then
        { override = { erlang }: builtins.seq erlang.outPath (package attribute tools); }
      else
        { }
    );
in
builtins.mapAttrs package (builtins.intersectAttrs facts programs)
