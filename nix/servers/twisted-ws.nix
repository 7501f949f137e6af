{ pkgs, ... }:
[
  (pkgs.python3.withPackages (packages: [
    packages.autobahn
    packages.twisted
  ]))
]
