# A function from a list of libraries to an Erlang that has them on its code path.
{ pkgs, erlang }:
libraries:
let
  inherit (pkgs) lib;
  needed = library: [ library ] ++ lib.concatMap needed (library.beamDeps or [ ]);
  # Where nixpkgs' builders put applications, and where Yaws puts its own.
  path = lib.concatMapStringsSep ":" (library: "${library}/lib/erlang/lib:${library}/lib") (
    lib.concatMap needed libraries
  );
in
pkgs.symlinkJoin {
  name = "erlang-with-libraries";
  paths = [ erlang ];
  nativeBuildInputs = [ pkgs.makeWrapper ];
  # Servers start with a cleared environment: the programs themselves must set the path.
  postBuild = ''
    for program in erl erlc escript; do
      wrapProgram "$out/bin/$program" --prefix ERL_LIBS : ${path}
    done
  '';
}
