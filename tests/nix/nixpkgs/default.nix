# The recorded packages of nixpkgs, as derivations that build nothing.
{ system }:
let
  lib = import ./lib.nix;
  builders = import ./builders.nix system lib;
  recorded = builtins.fromJSON (builtins.readFile ./recorded.json);
  # Evaluated or not: the difference is for the reader.
  all =
    kind: builtins.foldl' (known: group: known // group.${kind}) { } (builtins.attrValues recorded);

  package =
    name: tools:
    builders.make {
      inherit tools;
      name = builtins.replaceStrings [ "." ] [ "-" ] name;
    };
  module = name: tools: package name tools // { isModule = true; };

  python = builtins.mapAttrs module (all "python") // {
    toPythonModule = module: module // { isModule = true; };
  };
  perl = builtins.mapAttrs module (all "perl");
  haskell = builtins.mapAttrs module (all "haskell");
  ruby = builtins.mapAttrs module (all "ruby");

  # What a package offers beside itself.
  extras =
    name:
    if builtins.match "(python|pypy)[0-9]+" name != null then
      { withPackages = builders.withPackages plain.${name} python; }
    else if name == "perl" then
      { withPackages = builders.withPackages plain.perl perl; }
    else if name == "ruby" then
      { withPackages = builders.withPackages plain.ruby ruby; }
    else if builtins.match "beam\\..*\\.erlang" name != null then
      {
        overrideAttrs =
          change:
          builders.make {
            inherit (plain.${name}) name tools;
            uses = builders.mayOverride (change {
              configureFlags = [ "--of-nixpkgs" ];
            });
          };
      }
    else if name == "yaws" then
      {
        override =
          { erlang }:
          builders.make {
            inherit (plain.yaws) name tools;
            uses = [ erlang ];
          };
      }
    else
      { };

  plain = builtins.mapAttrs package (all "packages");
  whole = builtins.mapAttrs (name: value: value // extras name) plain;

  # { "a.b" = x; } becomes { a.b = x; }.
  merge =
    tree: name:
    let
      insert =
        into: keys: value:
        if keys == [ ] then
          value
        else
          into
          // {
            ${builtins.head keys} = insert (into.${builtins.head keys} or { }) (builtins.tail keys) value;
          };
      keys = builtins.filter builtins.isString (builtins.split "\\." name);
    in
    insert tree keys whole.${name};
  tree = builtins.foldl' merge { } (builtins.attrNames whole);
in
tree
// builders.pkgs
// {
  beam.packages = builtins.mapAttrs (_: of: of // builders.beam) tree.beam.packages;
  haskellPackages = tree.haskellPackages // {
    ghcWithPackages = builders.withPackages plain."haskellPackages.ghc" haskell;
  };
}
