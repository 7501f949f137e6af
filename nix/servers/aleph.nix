{ pkgs, ... }:
[
  pkgs.clojure
  pkgs.jdk21
]
