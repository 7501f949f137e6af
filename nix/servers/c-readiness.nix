{ pkgs, ... }: [ pkgs.gcc ]
