{ pkgs, ... }: [ (pkgs.perl.withPackages (packages: [ packages.EV ])) ]
