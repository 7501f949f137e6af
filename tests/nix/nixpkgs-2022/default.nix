# The recorded packages of nixpkgs 22.05, as derivations that build nothing.
{ system, config }:
assert config == { };
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
    };
in
{
  beam.packages.erlangR23.erlang =
    package "erlang-R23"
      recorded."not evaluated"."beam.packages.erlangR23.erlang";
  python27 = package "python27" recorded."not evaluated".python27;
}
