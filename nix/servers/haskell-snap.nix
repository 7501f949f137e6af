{ pkgs, ... }:
[
  (pkgs.haskellPackages.ghcWithPackages (packages: [
    packages.network
    packages.snap-core
    packages.snap-server
  ]))
]
