{ pkgs, ... }:
[
  pkgs.nginx
  (pkgs.python3.withPackages (packages: [ packages.tornado ]))
]
