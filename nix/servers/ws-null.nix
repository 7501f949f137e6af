# The load generator wsload comes along: the runner takes it from here.
{ pkgs, wsload, ... }:
[
  wsload
  pkgs.cargo
  pkgs.gcc
  pkgs.rustc
]
