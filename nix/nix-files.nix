# The check that the project's Nix files are formatted and hold no dead code.
pkgs:
let
  inherit (pkgs.lib) fileset;
  isNix = file: file.hasExt "nix";
in
pkgs.stdenvNoCC.mkDerivation {
  name = "deathmatch-nix-files";
  src = fileset.toSource {
    root = ../.;
    fileset = fileset.unions [
      ../flake.nix
      (fileset.fileFilter isNix ../clients)
      (fileset.fileFilter isNix ../nix)
      (fileset.fileFilter isNix ../tests/nix)
    ];
  };
  nativeBuildInputs = [
    pkgs.deadnix
    pkgs.nixfmt
  ];

  buildPhase = ''
    runHook preBuild
    find . -name '*.nix' -exec nixfmt --check {} +
    deadnix --fail .
    runHook postBuild
  '';

  installPhase = ''
    runHook preInstall
    mkdir "$out"
    runHook postInstall
  '';
}
