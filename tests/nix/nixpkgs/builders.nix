# nixpkgs' builders, reduced to their arguments: each refuses what the real one would not take,
# forces everything it is given and returns a derivation that carries `tools`, the programs in it.
system: lib:
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
      wrong = name: !(known ? ${name}) || !known.${name} arguments.${name};
      refused = builtins.filter wrong (builtins.attrNames arguments);
    in
    if missing != [ ] then
      throw "${function} needs the argument ${builtins.head missing}"
    else if refused == [ ] then
      arguments
    else if known ? ${builtins.head refused} then
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
    }:
    derivation {
      inherit name system;
      builder = "/bin/sh";
      uses = builtins.deepSeq tools (builtins.toJSON uses);
    }
    // passed
    // {
      inherit tools modules;
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
        modules = map (module: module.name) chosen;
      };

  mayOverride = check "overrideAttrs" {
    required = { };
    optional = phases // {
      configureFlags = listOf isWord;
    };
  };

  # An Erlang release's builders.
  beam = {
    buildHex =
      arguments:
      let
        checked = check "buildHex" {
          required = {
            name = isName;
            version = isName;
            sha256 = isHash;
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
        wrapper = builtins.filter (input: input.name == "makeWrapper") (checked.nativeBuildInputs or [ ]);
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
        checked = check "buildRustPackage" {
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
        # In a shell, and only there, variables stand beside the arguments.
        variables = builtins.filter (name: match "[A-Z][A-Z0-9_]*" name != null) (
          builtins.attrNames arguments
        );
        checked = check "mkShell" {
          required = {
            packages = packages;
          };
          optional = lib.genAttrs variables (_: isString) // {
            name = isName;
            shellHook = isString;
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
