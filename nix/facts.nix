# What nixpkgs and its pin of 2014 hold of the names in tests/nix/facts.json, in that file's form: a
# package's version and the arguments of its `.override`, a builder's arguments, null for what does
# not exist. facts.py compares the two.
{ pkgs, pkgs-2014 }:
let
  inherit (pkgs) lib;
  known = builtins.fromJSON (builtins.readFile ../tests/nix/facts.json);

  # What a dotted name leads to; null where there is no such attribute.
  find = set: name: builtins.foldl' (found: key: found.${key} or null) set (lib.splitString "." name);
  arguments = function: builtins.attrNames (lib.functionArgs function);
  evaluated =
    value:
    let
      attempt = builtins.tryEval (builtins.deepSeq value value);
    in
    if attempt.success then attempt.value else "throws when evaluated";
  # What `describe` says of each name, unless that is null or throws.
  facts =
    describe: set: names:
    builtins.mapAttrs (
      name: _:
      let
        value = find set name;
      in
      evaluated (if value == null then null else describe value)
    ) names;

  version = value: { version = value.version or null; };
  package =
    value:
    version value // lib.optionalAttrs (value ? override) { override = arguments value.override; };
in
{
  packages = facts package pkgs known.packages;
  python = facts version pkgs.python3Packages known.python;
  perl = facts version pkgs.perlPackages known.perl;
  ruby = facts version pkgs.rubyPackages known.ruby;
  functions = facts arguments pkgs known.functions;
  nixpkgs-2014 = facts (value: value.name or "set") pkgs-2014 known.nixpkgs-2014;
}
