# One environment for each server, by name. `[packages] nix` of its server.toml lists what is in it,
# as attributes of the toolchain and of nixpkgs. Where that takes an expression, servers/<name>.nix
# gives the list, as a function of the toolchain. Load generators that the server brings are added.
# A server that needs what the toolchain lacks is left out.
{
  pkgs,
  toolchain,
  clients,
}:
let
  inherit (pkgs) lib;
  folder = ../servers;

  # Those of a folder in servers/, and other releases of them.
  foldersIn =
    place:
    builtins.filter (
      name: !lib.hasPrefix "_" name && builtins.pathExists (place + "/${name}/server.toml")
    ) (builtins.attrNames (builtins.readDir place));
  releases = lib.genAttrs (foldersIn (folder + "/releases")) (name: "servers/releases/${name}");
  places = lib.genAttrs (foldersIn folder) (name: "servers/${name}") // releases;
  toml = name: builtins.fromTOML (builtins.readFile (../. + "/${places.${name}}/server.toml"));
  attributes =
    name:
    let
      own = toml name;
    in
    own.packages.nix or (if own ? extends then attributes own.extends else [ ]);
  named = builtins.filter (name: attributes name != [ ]) (builtins.attrNames places);
  written = map (lib.removeSuffix ".nix") (builtins.attrNames (builtins.readDir ./servers));

  # An interpreter finds a module only if it was made with it. By the prefix of a module's
  # attribute: the function that makes the interpreter from a choice among its modules.
  erlangs = builtins.filter (lib.hasPrefix "otp") (builtins.attrNames toolchain);
  erlangOf = beam: choose: beam.erlangWith (choose beam.erlangLibs);
  interpreters = {
    "erlangLibs." = erlangOf toolchain;
    "haskellPackages." = pkgs.haskellPackages.ghcWithPackages;
    "perlPackages." = pkgs.perl.withPackages;
    "python3Packages." = pkgs.python3.withPackages;
    "rubyPackages." = pkgs.ruby.withPackages;
  }
  // builtins.listToAttrs (
    map (otp: {
      name = "${otp}.erlangLibs.";
      value = erlangOf toolchain.${otp};
    }) erlangs
  );
  prefixes = builtins.attrNames interpreters;
  isModule = attribute: builtins.any (prefix: lib.hasPrefix prefix attribute) prefixes;

  keys = lib.splitString ".";
  # The attribute that `path` leads to from `set`.
  find =
    name: attribute: set: path:
    builtins.foldl' (
      found: key:
      found.${key}
        or (throw "${places.${name}}/server.toml, key packages.nix: there is no ${attribute}; nix/README.md says what there is")
    ) set path;
  program =
    name: attribute:
    let
      path = keys attribute;
    in
    find name attribute (if toolchain ? ${builtins.head path} then toolchain else pkgs) path;
  withModules =
    name: prefix:
    let
      modules = builtins.filter (lib.hasPrefix prefix) (attributes name);
      choose = set: map (module: find name module set (keys (lib.removePrefix prefix module))) modules;
    in
    lib.optional (modules != [ ]) (interpreters.${prefix} choose);
  listed =
    name:
    map (program name) (builtins.filter (attribute: !isModule attribute) (attributes name))
    ++ lib.concatMap (withModules name) prefixes;

  # A nixpkgs of another time is offered where it has packages for the system.
  isOffered =
    name:
    builtins.all (attribute: !lib.hasPrefix "pkgs-2014." attribute || toolchain ? pkgs-2014) (
      attributes name
    );
  ofFile = name: import (./servers + "/${name}.nix");
  takes = name: builtins.attrNames (builtins.functionArgs (ofFile name));
  isPossible = name: builtins.all (argument: toolchain ? ${argument}) (takes name);
  lists =
    lib.genAttrs (builtins.filter isOffered named) listed
    // lib.genAttrs (builtins.filter isPossible written) (name: ofFile name toolchain);
in
builtins.mapAttrs (
  name: list:
  pkgs.buildEnv {
    name = "deathmatch-${name}";
    paths = list ++ clients.broughtBy name;
    # Programs, and Apache's modules beside them.
    pathsToLink = [
      "/bin"
      "/modules"
    ];
  }
) lists
