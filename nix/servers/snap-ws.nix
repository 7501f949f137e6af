{ pkgs, ... }:
[
  (pkgs.haskellPackages.ghcWithPackages (packages: [
    packages.io-streams
    packages.network
    packages.snap-core
    packages.snap-server
    packages.websockets
  ]))
]
