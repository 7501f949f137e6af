{ pkgs, ... }: [ pkgs.bun ]
