# Three functions of nixpkgs' lib.fileset, with its meaning: a file set is a path that exists or what
# these functions return, and folders without a file are left out.
let
  isSet = value: builtins.isAttrs value && value._type or null == "fileset";
  # { base, keeps } of a set: the file or folder that it is within, and which files it holds of it.
  parts =
    function: value:
    if isSet value then
      value.parts
    else if !builtins.isPath value then
      throw "lib.fileset.${function}: an element is neither a path nor a file set"
    else if !builtins.pathExists value then
      throw "lib.fileset.${function}: ${toString value} is a path that does not exist"
    else
      [
        {
          base = toString value;
          keeps = _: true;
        }
      ];
  fileSet = parts: {
    _type = "fileset";
    inherit parts;
  };

  isWithin = folder: path: path == folder || startsWith "${folder}/" path;
  startsWith = start: text: builtins.substring 0 (builtins.stringLength start) text == start;
  holdsFile = part: path: isWithin part.base path && part.keeps (baseNameOf path);
  holds =
    part: path: type:
    if type == "directory" then
      isWithin path part.base || (isWithin part.base path && holdsAny part path)
    else
      holdsFile part path;
  holdsAny =
    part: folder:
    let
      entries = builtins.readDir folder;
    in
    builtins.any (name: holds part "${folder}/${name}" entries.${name}) (builtins.attrNames entries);
in
{
  unions =
    sets:
    if builtins.isList sets then
      fileSet (builtins.concatMap (parts "unions") sets)
    else
      throw "lib.fileset.unions: expected a list, but got a ${builtins.typeOf sets}";

  fileFilter =
    keep: path:
    if isSet path then
      throw "lib.fileset.fileFilter: the second argument is a file set, and must be a path"
    else
      fileSet (
        map (
          part:
          part
          // {
            keeps =
              name:
              keep {
                inherit name;
                hasExt = extension: builtins.match ".*\\.${extension}" name != null;
              };
          }
        ) (parts "fileFilter" path)
      );

  toSource =
    { root, fileset }:
    let
      kept = parts "toSource" fileset;
      outside = builtins.filter (part: !isWithin (toString root) part.base) kept;
    in
    if !builtins.isPath root then
      throw "lib.fileset.toSource: `root` must be a path, and is a ${builtins.typeOf root}"
    else if outside != [ ] then
      throw "lib.fileset.toSource: ${(builtins.head outside).base} is not under the `root`"
    else
      {
        outPath = builtins.path {
          name = "source";
          path = root;
          filter = path: type: builtins.any (part: holds part path type) kept;
        };
      };
}
