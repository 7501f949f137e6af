{ pkgs, ... }:
[
  pkgs.cargo
  pkgs.gcc
  pkgs.rustc
]
