# Packages of nixpkgs of March 2014 that facts.json names, as derivations that build nothing.
{ system, config }:
assert system == "x86_64-linux" && config == { };
let
  programs = builtins.fromJSON (builtins.readFile ./programs.json);
  facts = (builtins.fromJSON (builtins.readFile ./facts.json)).nixpkgs-2014;
  package =
    attribute: name:
    derivation {
      inherit name system;
      builder = "/bin/sh";
    }
    // {
      tools = programs.${attribute} or [ ];
    }
    // (
      if attribute == "yaws" then
        { override = { erlang }: builtins.seq erlang.outPath (package attribute name); }
      else
        { }
    );
in
builtins.mapAttrs (attribute: name: if name == "set" then { } else package attribute name) facts
