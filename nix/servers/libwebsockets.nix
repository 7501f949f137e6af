# A compiler that finds the library: the server's commands get no environment but PATH.
{ pkgs, ... }:
let
  inherit (pkgs) lib;
  # nixpkgs gives it libuv and leaves this option off, as it is by default; readiness=epoll needs it.
  libwebsockets = pkgs.libwebsockets.overrideAttrs (old: {
    cmakeFlags = old.cmakeFlags ++ [ "-DLWS_WITH_LIBUV=ON" ];
  });
  # Its header includes those of the others.
  headers = map (package: "-isystem ${lib.getDev package}/include") [
    libwebsockets
    pkgs.libuv
    pkgs.openssl
  ];
  libraries = "${lib.getLib libwebsockets}/lib";
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
