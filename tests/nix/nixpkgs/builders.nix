# nixpkgs' builders, reduced to their arguments: each refuses what the real one would not take,
# forces everything it is given and returns a derivation that carries `tools`, the programs in it.
# `takes` are the argument names that evaluation of the real ones found.
{
  system,
  lib,
  takes,
}:
let
  inherit (builtins)
    all
    elem
    isAttrs
    isBool
    isList
    isPath
    isString
    match
    ;

  isPackage = value: isAttrs value && value.type or null == "derivation" && isString value.outPath;
  isSource = value: isPath value || (isAttrs value && isString value.outPath);
  listOf = of: value: isList value && all of value;
  attrsOf = of: value: isAttrs value && all of (builtins.attrValues value);
  isWord = value: isString value && match ".*[ \n].*" value == null;
  isHash = value: isString value && match "[0-9a-f]{64}|sha256-[A-Za-z0-9+/]{43}=" value != null;
  isUrl = value: isString value && match "https://.+|mirror://debian/.+" value != null;
  isName = value: isString value && match "[A-Za-z0-9+._?=-]+" value != null;
  isFile = value: isPath value && builtins.pathExists value;
  packages = listOf isPackage;

  phases = lib.genAttrs [
    "postUnpack"
    "prePatch"
    "postPatch"
    "preConfigure"
    "configurePhase"
    "preBuild"
    "buildPhase"
    "postBuild"
    "checkPhase"
    "preInstall"
    "installPhase"
    "postInstall"
    "fixupPhase"
  ] (_: isString);

  # What a builder takes by an ellipsis, beside the names that the facts list, and the builders
  # that the facts do not list: arguments with which the study's own recipes were evaluated.
  beyond = {
    "beamPackages.buildRebar3" = [
      "name"
      "version"
      "src"
    ];
    fetchFromGitHub = [
      "owner"
      "repo"
      "rev"
      "tag"
      "hash"
    ];
    symlinkJoin = [ "nativeBuildInputs" ];
    "rustPlatform.buildRustPackage" = [
      "pname"
      "version"
      "src"
      "doCheck"
    ];
    mkDerivation = [
      "name"
      "pname"
      "version"
      "src"
      "patches"
      "nativeBuildInputs"
      "cmakeFlags"
      "configureFlags"
      "makeFlags"
      "hardeningDisable"
      "env"
      "meta"
    ]
    ++ builtins.attrNames phases;
    # In a shell, and only there, variables stand beside the arguments.
    mkShell = name: match "[A-Z][A-Z0-9_]*" name != null;
  };
  admits =
    function: name:
    let
      more = beyond.${function} or [ ];
    in
    elem name (takes.${function} or [ ]) || (if isList more then elem name more else more name);

  # Arguments against { required, optional }, each a set of predicates by name.
  check =
    function:
    {
      required,
      optional ? { },
    }:
    arguments:
    let
      missing = builtins.filter (name: !(arguments ? ${name})) (builtins.attrNames required);
      known = optional // required;
      wrong = name: !(admits function name) || !(known ? ${name}) || !known.${name} arguments.${name};
      refused = builtins.filter wrong (builtins.attrNames arguments);
    in
    if missing != [ ] then
      throw "${function} needs the argument ${builtins.head missing}"
    else if refused == [ ] then
      arguments
    else if known ? ${builtins.head refused} && admits function (builtins.head refused) then
      throw "${function} cannot take this value of ${builtins.head refused}"
    else
      throw "${function} has no argument ${builtins.head refused}";

  make =
    {
      name,
      uses ? { },
      tools ? [ ],
      modules ? [ ],
      passed ? { },
      # Whether nixpkgs has it, so that a binary cache does.
      cached ? false,
      # How many derivations it is really made by, beside those that it uses.
      derivations ? 1,
      version ? "",
    }:
    derivation {
      inherit name system;
      builder = "/bin/sh";
      uncached = if cached then 0 else derivations;
      uses = builtins.deepSeq tools (builtins.toJSON uses);
    }
    // passed
    // {
      inherit tools modules version;
    };

  union = paths: builtins.concatLists (map (path: path.tools) paths);
  unionOfModules = paths: builtins.concatLists (map (path: path.modules or [ ]) paths);
  disjoint =
    function: paths:
    let
      tools = union paths;
      twice = builtins.filter (tool: builtins.length (builtins.filter (t: t == tool) tools) > 1) tools;
    in
    if twice == [ ] then tools else throw "${function}: two packages hold ${builtins.head twice}";

  mkDerivation =
    arguments:
    let
      named =
        if arguments ? pname then
          {
            pname = isName;
            version = isName;
          }
        else
          { name = isName; };
      checked = check "mkDerivation" {
        required = named // {
          src = isSource;
        };
        optional = phases // {
          patches = listOf isFile;
          nativeBuildInputs = packages;
          buildInputs = packages;
          configureFlags = listOf isWord;
          makeFlags = listOf isWord;
          hardeningDisable = listOf isWord;
          env = attrsOf isString;
          meta = isAttrs;
        };
      } arguments;
      meta = checked.meta or { };
    in
    make {
      name = checked.name or "${checked.pname}-${checked.version}";
      uses = checked;
      tools = if meta ? mainProgram then [ meta.mainProgram ] else [ ];
      passed = { inherit meta; };
    };
in
{
  inherit make isPackage;

  # A function that can be asked for its arguments, as nixpkgs' can.
  callable = names: function: {
    __functor = _: function;
    __functionArgs = lib.genAttrs names (_: false);
  };

  # A Python, Perl, Ruby or Haskell with some of its recorded modules.
  withPackages =
    interpreter: known: choose:
    let
      chosen = choose known;
    in
    if !listOf (module: isPackage module && module.isModule or false) chosen then
      throw "withPackages of ${interpreter.name} wants a list of its modules"
    else
      make {
        name = "${interpreter.name}-env";
        uses = [ interpreter ] ++ chosen;
        tools = interpreter.tools ++ union chosen;
        modules = map (module: module.moduleName) chosen;
      };

  mayOverrideAttrs = check "mkDerivation" {
    required = { };
    optional = phases // {
      cmakeFlags = listOf isWord;
      configureFlags = listOf isWord;
    };
  };

  # `.override` of a package of which this is known.
  mayOverride =
    package: fact: arguments:
    let
      refused = builtins.filter (name: !elem name fact.override) (builtins.attrNames arguments);
    in
    if refused != [ ] then
      throw "${package}.override has no argument ${builtins.head refused}"
    else
      make {
        name = "${builtins.replaceStrings [ "." ] [ "-" ] package}-${fact.version}";
        # Of a release's set of Erlang packages the Erlang; the rest is too much to write down.
        uses = builtins.mapAttrs (
          _: value: if value ? erlang then "${value.erlang}" else builtins.typeOf value
        ) arguments;
        tools = [ package ];
      };

  # An Erlang release's builders.
  beam = {
    fetchHex =
      arguments:
      make {
        name = "hex-source";
        # It unpacks what it fetched in a derivation of its own.
        derivations = 2;
        uses = check "beamPackages.fetchHex" {
          required = {
            pkg = isName;
            version = isName;
            sha256 = isHash;
          };
        } arguments;
      };

    buildRebar3 =
      arguments:
      let
        checked = check "beamPackages.buildRebar3" {
          required = {
            name = isName;
            version = isName;
            src = isPackage;
          };
          optional = phases // {
            beamDeps = packages;
          };
        } arguments;
      in
      make {
        name = "erlang-${checked.name}-${checked.version}";
        uses = checked;
        passed.beamDeps = checked.beamDeps or [ ];
      };
  };

  pkgs = {
    inherit lib;
    stdenv = { inherit mkDerivation; };
    stdenvNoCC = { inherit mkDerivation; };

    fetchurl =
      arguments:
      make {
        name = "fetched";
        uses = check "fetchurl" {
          required = {
            url = isUrl;
          }
          // (if arguments ? sha256 then { sha256 = isHash; } else { hash = isHash; });
        } arguments;
      };

    fetchFromGitHub =
      arguments:
      make {
        name = "source";
        uses = check "fetchFromGitHub" {
          required = {
            owner = isName;
            repo = isName;
            hash = isHash;
          }
          // (if arguments ? tag then { tag = isString; } else { rev = isString; });
        } arguments;
      };

    buildEnv =
      arguments:
      let
        checked = check "buildEnv" {
          required = {
            name = isName;
            paths = packages;
          };
          optional = {
            pathsToLink = listOf (path: isString path && match "/.*" path != null);
            ignoreCollisions = isBool;
            meta = isAttrs;
          };
        } arguments;
        links = checked.pathsToLink or [ "/" ];
        tools = disjoint "buildEnv ${checked.name}" checked.paths;
      in
      make {
        inherit (checked) name;
        uses = checked;
        tools = if elem "/" links || elem "/bin" links then tools else [ ];
        modules = unionOfModules checked.paths;
      };

    symlinkJoin =
      arguments:
      let
        checked = check "symlinkJoin" {
          required = {
            name = isName;
            paths = packages;
          };
          optional = {
            nativeBuildInputs = packages;
            postBuild = isString;
            meta = isAttrs;
          };
        } arguments;
        wraps =
          match ".*wrapProgram.*" (builtins.replaceStrings [ "\n" ] [ " " ] (checked.postBuild or ""))
          != null;
        wrapper = builtins.filter (input: input.attribute or "" == "makeWrapper") (
          checked.nativeBuildInputs or [ ]
        );
      in
      if wraps && wrapper == [ ] then
        throw "symlinkJoin ${checked.name}: wrapProgram comes from makeWrapper"
      else
        make {
          inherit (checked) name;
          uses = checked;
          tools = disjoint "symlinkJoin ${checked.name}" checked.paths;
        };

    linkFarm =
      name: entries:
      if !isName name || !attrsOf (value: isPackage value || isString value) entries then
        throw "linkFarm wants a name and a set of packages"
      else
        make {
          inherit name;
          # As text, so that a reader of the derivation sees what is linked.
          uses = builtins.mapAttrs (_: entry: "${entry}") entries;
        };

    rustPlatform.buildRustPackage =
      arguments:
      let
        # A crate that the lock has no checksum of would need a hash beside it.
        isLock =
          value:
          isFile value
          &&
            all (crate: !(crate ? source) || isHash (crate.checksum or null))
              (builtins.fromTOML (builtins.readFile value)).package;
        checked = check "rustPlatform.buildRustPackage" {
          required = {
            pname = isName;
            version = isName;
            src = isSource;
            cargoLock = value: builtins.attrNames value == [ "lockFile" ] && isLock value.lockFile;
          };
          optional = phases // {
            doCheck = isBool;
            meta = isAttrs;
          };
        } arguments;
      in
      make {
        name = "${checked.pname}-${checked.version}";
        uses = checked;
        tools = [ checked.meta.mainProgram ];
        passed = { inherit (checked) meta; };
        # Itself, the folder of its crates, and each crate.
        derivations =
          2
          + builtins.length (
            builtins.filter (crate: crate ? source)
              (builtins.fromTOML (builtins.readFile checked.cargoLock.lockFile)).package
          );
      };

    writeShellApplication =
      arguments:
      let
        checked = check "writeShellApplication" {
          required = {
            name = isName;
            text = isString;
          };
          optional = {
            runtimeInputs = packages;
            runtimeEnv = attrsOf isString;
            meta = isAttrs;
          };
        } arguments;
      in
      make {
        inherit (checked) name;
        uses = checked;
        tools = [ checked.name ];
        passed.meta = {
          mainProgram = checked.name;
        }
        // checked.meta or { };
      };

    mkShell =
      arguments:
      let
        variables = builtins.filter beyond.mkShell (builtins.attrNames arguments);
        checked = check "mkShell" {
          required = {
            packages = packages;
          };
          optional = lib.genAttrs variables (_: isString) // {
            name = isName;
            inputsFrom = packages;
          };
        } arguments;
      in
      make {
        name = checked.name or "nix-shell";
        uses = checked;
        tools = union checked.packages;
        modules = unionOfModules checked.packages;
        passed = {
          variables = lib.getAttrs variables checked;
          # The derivations that each variable names.
          context = builtins.mapAttrs (_: text: builtins.attrNames (builtins.getContext text)) (
            lib.getAttrs variables checked
          );
        };
      };
  };
}
