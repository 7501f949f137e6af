# A compiler that finds the library: the server's commands get no environment but PATH. Whether
# nixpkgs builds it with libuv, which readiness=epoll needs, has not been seen.
{ pkgs, ... }:
let
  inherit (pkgs) lib;
  # Its header includes those of the others.
  headers = map (package: "-isystem ${lib.getDev package}/include") [
    pkgs.libwebsockets
    pkgs.libuv
    pkgs.openssl
  ];
  libraries = "${lib.getLib pkgs.libwebsockets}/lib";
in
[
  (pkgs.writeShellApplication {
    name = "cc";
    text = ''
      exec ${pkgs.gcc}/bin/cc ${builtins.concatStringsSep " " headers} \
        -L${libraries} -Wl,-rpath,${libraries} "$@"
    '';
  })
]
