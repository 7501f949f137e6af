# The load generators, as their clients/<name>/client.toml describes them: made by the expression
# that `nix` names, in the same folder, or else by the folder's own build script.
pkgs:
let
  inherit (pkgs) lib;
  folder = ../clients;

  about = name: builtins.fromTOML (builtins.readFile (folder + "/${name}/client.toml"));
  byScript =
    name:
    pkgs.stdenv.mkDerivation {
      inherit name;
      src = folder + "/${name}";
      # Its script has every warning end the build, and knows the compilers of today.
      env.NIX_CFLAGS_COMPILE = "-Wno-error";

      buildPhase = ''
        runHook preBuild
        sh ./build built
        runHook postBuild
      '';

      installPhase = ''
        runHook preInstall
        mkdir "$out"
        cp -r built/bin "$out"
        runHook postInstall
      '';

      meta = {
        description = (about name).title;
        mainProgram = (about name).program;
      };
    };
  package =
    name:
    if about name ? nix then import (folder + "/${name}/${(about name).nix}") pkgs else byScript name;

  names = builtins.filter (name: builtins.pathExists (folder + "/${name}/client.toml")) (
    builtins.attrNames (builtins.readDir folder)
  );
  packages = lib.genAttrs names package;
  those = wanted: builtins.attrValues (lib.filterAttrs (name: _: wanted (about name)) packages);
in
{
  inherit packages;
  # Those that no server brings.
  shell = those (client: !(client ? built_by));
  broughtBy = server: those (client: client.built_by or "" == server);
}
