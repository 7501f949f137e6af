# The paper of the committed reference measurements: one HTML page and one PDF.
{
  pkgs,
  tools,
  source,
}:
pkgs.stdenvNoCC.mkDerivation {
  name = "deathmatch-paper";
  src = source;
  nativeBuildInputs = tools;

  buildPhase = ''
    runHook preBuild
    export HOME=$TMPDIR DEATHMATCH_TOOLCHAIN=nix
    snakemake paper --config dataset=reference
    runHook postBuild
  '';

  installPhase = ''
    runHook preInstall
    cp -r paper/reference "$out"
    runHook postInstall
  '';

  meta.description = "Five web-server benchmarks, replicated: the paper";
}
