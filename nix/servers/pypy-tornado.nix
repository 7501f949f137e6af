{ pkgs, ... }:
[
  pkgs.pypy311
  pkgs.python3
]
