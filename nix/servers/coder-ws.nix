{ pkgs, ... }: [ pkgs.go_1_26 ]
