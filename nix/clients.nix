# The load generators that clients/<name>/client.toml describes. Its key `nix` names an expression
# in the same folder; without it, the folder's build script makes the load generator.
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
      # The script turns warnings into errors; a later compiler may have more of them.
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
