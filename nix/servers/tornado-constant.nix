{ pkgs, ... }: [ (pkgs.python3.withPackages (packages: [ packages.tornado ])) ]
