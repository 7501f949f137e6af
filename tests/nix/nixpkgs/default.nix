# The stand-in for nixpkgs: what facts.json says that evaluation of the real one found, and no more.
# A name that the facts lack does not exist here. Derivations build nothing.
{ system }:
let
  lib = import ./lib.nix;
  facts = builtins.fromJSON (builtins.readFile ./facts.json);
  # Which programs a package holds, which evaluation does not tell.
  programs = builtins.fromJSON (builtins.readFile ./programs.json);
  builders = import ./builders.nix {
    inherit system lib;
    takes = facts.functions;
  };

  # Null is an attribute that does not exist, a text one that throws.
  there = lib.filterAttrs (_: fact: fact != null);
  # The facts are of Linux; of aarch64-darwin it is known which of the study's tools it lacks.
  lackedByDarwin = [
    "chromium"
    "iproute2"
    "strace"
  ];

  package =
    kind: name: fact:
    if builtins.isString fact then
      throw "${name} ${fact}"
    else if system == "aarch64-darwin" && builtins.elem name lackedByDarwin then
      throw "${name} is not available on ${system}"
    else
      builders.make {
        tools = programs.${kind}.${name} or [ ];
        name = "${builtins.replaceStrings [ "." ] [ "-" ] name}-${fact.version}";
        version = fact.version;
        cached = true;
      }
      // {
        attribute = name;
      }
      // lib.optionalAttrs (fact ? override) {
        override = builders.callable fact.override (builders.mayOverride name fact);
      };
  modules =
    kind:
    builtins.mapAttrs (
      name: fact:
      package kind name fact
      // {
        isModule = true;
        moduleName = name;
      }
    ) (there facts.${kind});

  python = modules "python";
  # Some of Perl's are among the packages, by their whole attribute.
  perlPrefix = "perlPackages.";
  perl =
    builtins.listToAttrs (
      map (
        attribute:
        let
          name = builtins.substring (builtins.stringLength perlPrefix) (-1) attribute;
        in
        {
          inherit name;
          value = plain.${attribute} // {
            isModule = true;
            moduleName = name;
          };
        }
      ) (builtins.filter (lib.hasPrefix perlPrefix) (builtins.attrNames plain))
    )
    // modules "perl";
  ruby = modules "ruby";
  # hackage-packages.nix was missing from the tree of the facts: these are not judged.
  haskell = builtins.mapAttrs (
    name: _:
    builders.make {
      inherit name;
      cached = true;
    }
    // {
      isModule = true;
      moduleName = name;
    }
  ) programs.haskell;

  # `.overrideAttrs` of a package whose build has this attribute, a list.
  withAttrs = name: attribute: {
    overrideAttrs =
      change:
      builders.make {
        inherit (plain.${name}) name tools version;
        uses = builders.mayOverrideAttrs (change {
          ${attribute} = [ "--of-nixpkgs" ];
        });
      };
  };
  # What a package offers beside itself.
  extras =
    name:
    if name == "python3" then
      { withPackages = builders.withPackages plain.python3 python; }
    else if name == "perl" then
      { withPackages = builders.withPackages plain.perl perl; }
    else if name == "ruby" then
      { withPackages = builders.withPackages plain.ruby ruby; }
    else if builtins.match "beam(_minimal)?\\..*\\.erlang" name != null then
      withAttrs name "configureFlags"
    else if name == "libwebsockets" then
      withAttrs name "cmakeFlags"
    else
      { };

  # A builder is a function: it has no version.
  isPackage = _: fact: builtins.isString fact || fact.version != null;
  plain = builtins.mapAttrs (package "packages") (lib.filterAttrs isPackage (there facts.packages));
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

  # Builders, each with the arguments that the facts list.
  asked =
    prefix:
    builtins.mapAttrs (
      name: builder:
      let
        function = prefix + name;
      in
      if facts.functions ? ${function} then
        builders.callable facts.functions.${function} builder
      else
        builder
    );
  beam = asked "beamPackages." builders.beam;
in
tree
// asked "" builders.pkgs
// {
  rustPlatform = asked "rustPlatform." builders.pkgs.rustPlatform;
  beam.packages = builtins.mapAttrs (_: of: of // beam) tree.beam.packages;
  beam_minimal.packages = builtins.mapAttrs (_: of: of // beam) tree.beam_minimal.packages;
  beamPackages = tree.beam.packages.erlang_28 // beam;
  python3Packages = python;
  perlPackages = tree.perlPackages // perl;
  rubyPackages = ruby;
  haskellPackages = tree.haskellPackages // {
    ghcWithPackages = builders.withPackages plain."haskellPackages.ghc" haskell;
  };
}
