{ pkgs, ... }: [ pkgs.nodejs_24 ]
