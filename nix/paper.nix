# The paper of the committed reference measurements: one HTML page and one PDF. A function from
# shell commands, which change the source before the paper is made, to the package.
{
  pkgs,
  tools,
  source,
}:
change:
pkgs.stdenvNoCC.mkDerivation {
  name = "deathmatch-paper";
  src = source;
  nativeBuildInputs = tools;
  postPatch = change;

  # All files of the store have one date: by dates alone the committed paper would be current.
  buildPhase = ''
    runHook preBuild
    export HOME=$TMPDIR DEATHMATCH_TOOLCHAIN=nix
    snakemake paper --forceall --config dataset=reference
    runHook postBuild
  '';

  installPhase = ''
    runHook preInstall
    cp -r paper/reference "$out"
    runHook postInstall
  '';

  meta.description = "Five web-server benchmarks, replicated: the paper";
}
