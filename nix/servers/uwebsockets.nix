{ pkgs, ... }:
[
  pkgs.cargo
  pkgs.gcc
]
