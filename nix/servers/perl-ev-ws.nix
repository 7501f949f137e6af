{ pkgs, ... }:
let
  # Not in nixpkgs. It is Perl alone, so that its path is all that it takes.
  io-stream = pkgs.stdenvNoCC.mkDerivation {
    pname = "io-stream";
    version = "2.0.3";
    src = pkgs.fetchurl {
      url = "mirror://debian/pool/main/libi/libio-stream-perl/libio-stream-perl_2.0.3.orig.tar.gz";
      sha256 = "708c180c4df4b61a949b41a238933f7c6d0120b13804dd7c3e39e42c71a07b10";
    };
    installPhase = ''
      runHook preInstall
      mkdir -p "$out"
      cp -r lib "$out"
      runHook postInstall
    '';
  };
in
[
  (pkgs.symlinkJoin {
    name = "perl-with-io-stream";
    paths = [
      (pkgs.perl.withPackages (packages: [
        packages.AnyEvent
        packages.EV
        packages.ProtocolWebSocket
      ]))
    ];
    nativeBuildInputs = [ pkgs.makeWrapper ];
    postBuild = ''wrapProgram "$out/bin/perl" --prefix PERL5LIB : ${io-stream}/lib'';
  })
]
