# Misultin's last release, compiled as its Makefile does, without the rebar of its time.
{ pkgs, erlang }:
pkgs.stdenv.mkDerivation rec {
  pname = "misultin";
  version = "0.9";

  src = pkgs.fetchFromGitHub {
    owner = "ostinelli";
    repo = "misultin";
    rev = "refs/tags/misultin-${version}";
    # Misultin's README names the tag; no public place that we found records a hash of it.
    hash = pkgs.lib.fakeHash;
  };

  nativeBuildInputs = [ erlang ];

  buildPhase = ''
    runHook preBuild
    mkdir -p ebin
    erlc -I include -o ebin src/*.erl
    cp src/misultin.app.src ebin/misultin.app
    runHook postBuild
  '';

  installPhase = ''
    runHook preInstall
    mkdir -p "$out/lib/erlang/lib/misultin-${version}"
    cp -r ebin include "$out/lib/erlang/lib/misultin-${version}"
    runHook postInstall
  '';

  meta.description = "Erlang library for HTTP and WebSocket servers, discontinued in 2012";
}
