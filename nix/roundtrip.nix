# The round-trip client, by its own build script.
pkgs:
pkgs.stdenv.mkDerivation {
  name = "roundtrip";
  src = ../clients/roundtrip;
  # The script has every warning end the build, and knows the compilers of today.
  env.NIX_CFLAGS_COMPILE = "-Wno-error";

  buildPhase = ''
    runHook preBuild
    sh ./build built
    runHook postBuild
  '';

  installPhase = ''
    runHook preInstall
    install -D built/bin/roundtrip "$out/bin/roundtrip"
    runHook postInstall
  '';

  meta = {
    description = "Open- and closed-loop request client that times each exchange";
    mainProgram = "roundtrip";
  };
}
