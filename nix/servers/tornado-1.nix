# Python 2.7, which nixpkgs has dropped since; the build adds Tornado 1.2.1 to it, as on Debian.
{ pkgs-2022, ... }: [ pkgs-2022.python27 ]
