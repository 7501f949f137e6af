{ pkgs, ... }: [ pkgs.python3 ]
