# What the flake takes from nixpkgs 22.05, as derivations that build nothing. Nobody has evaluated
# that release: these attributes are named as its sources are remembered, and no fact backs them.
# Later releases mark Python 2.7 as insecure; whether 22.05 does is not known, so it does here.
{ system, config }:
assert builtins.attrNames config == [ "allowInsecurePredicate" ];
let
  programs = builtins.fromJSON (builtins.readFile ./programs.json);
  package =
    name: tools:
    derivation {
      inherit name system;
      builder = "/bin/sh";
    }
    // {
      inherit tools;
    };
  python27 = {
    pname = "python";
    version = "2.7.18";
  };
in
{
  beam.packages.erlangR23.erlang = package "erlang-R23" programs."beam.packages.erlangR23.erlang";
  gcc = package "gcc-2022" programs.gcc;
  python27 =
    if config.allowInsecurePredicate python27 then
      package "python27" programs.python27
    else
      throw "Package ‘python-2.7.18’ is marked as insecure, refusing to evaluate.";
}
