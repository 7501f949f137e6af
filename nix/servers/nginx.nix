{ pkgs, ... }: [ pkgs.nginx ]
