{ pkgs, ... }:
[
  (pkgs.haskellPackages.ghcWithPackages (packages: [
    packages.http-types
    packages.network
    packages.wai
    packages.warp
  ]))
]
