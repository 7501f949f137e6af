{ pkgs, ... }:
[
  pkgs.jdk21
  pkgs.maven
]
