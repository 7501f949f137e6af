# The functions of nixpkgs' library that the flake may use, each with nixpkgs' meaning.
rec {
  fileset = import ./fileset.nix;

  fakeHash = "sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

  inherit (builtins) concatMap;
  concatMapStringsSep =
    separator: f: list:
    builtins.concatStringsSep separator (map f list);
  filterAttrs =
    keep: set: getAttrs (builtins.filter (name: keep name set.${name}) (builtins.attrNames set)) set;
  functionArgs = function: function.__functionArgs or (builtins.functionArgs function);
  genAttrs =
    names: f:
    builtins.listToAttrs (
      map (name: {
        inherit name;
        value = f name;
      }) names
    );
  getAttrs = names: set: genAttrs names (name: set.${name});
  getDev = package: package.dev or package;
  getLib = package: package.lib or package;
  getExe = package: "${package}/bin/${package.meta.mainProgram}";
  hasPrefix = prefix: string: builtins.substring 0 (builtins.stringLength prefix) string == prefix;
  optional = condition: value: if condition then [ value ] else [ ];
  optionalAttrs = condition: set: if condition then set else { };
  splitString =
    separator: string:
    builtins.filter builtins.isString (
      builtins.split (builtins.replaceStrings [ "." ] [ "\\." ] separator) string
    );
  removePrefix =
    prefix: string:
    if hasPrefix prefix string then
      builtins.substring (builtins.stringLength prefix) (-1) string
    else
      string;
  removeSuffix =
    suffix: string:
    let
      rest = builtins.stringLength string - builtins.stringLength suffix;
    in
    if rest >= 0 && builtins.substring rest (-1) string == suffix then
      builtins.substring 0 rest string
    else
      string;
}
