# The paper of the committed reference measurements: one HTML page and one PDF. A function from
# shell commands, which change the source before the paper is made, to the package.
{
  pkgs,
  tools,
  variables,
}:
change:
let
  inherit (pkgs.lib) fileset;
in
pkgs.stdenvNoCC.mkDerivation {
  name = "deathmatch-paper";
  # Only what the paper is made from. A changed README makes no new paper, and a clone's own
  # build/ and datasets never get in.
  src = fileset.toSource {
    root = ../.;
    fileset = fileset.unions [
      ../CITATION.cff
      ../Snakefile
      ../bin
      ../clients
      ../config
      ../data/published
      ../data/reference
      ../deathmatch
      ../experiments
      ../notebooks
      ../paper/source
      ../profiles/default
      ../servers
      ../toolchains
      ../workflow
    ];
  };
  nativeBuildInputs = tools;
  postPatch = change;
  env = variables;

  # All files of the store have one date: by dates alone the committed paper would be current.
  buildPhase = ''
    runHook preBuild
    export HOME=$TMPDIR
    snakemake paper --forceall --config dataset=reference
    runHook postBuild
  '';

  installPhase = ''
    runHook preInstall
    mkdir "$out"
    # Without .gitignore, which a folder that was not there begins with.
    cp -r paper/reference/* "$out"
    runHook postInstall
  '';

  meta.description = "Five web-server benchmarks, replicated: the paper";
}
