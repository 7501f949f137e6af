{ pkgs, ... }:
[
  (pkgs.python3.withPackages (packages: [
    packages.gevent
    packages.gevent-websocket
  ]))
]
