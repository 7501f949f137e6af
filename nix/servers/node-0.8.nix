# npm, with which the build fetches Node 0.8, as on Debian: nixpkgs of 2014 has 0.10 already.
{ pkgs, ... }: [ pkgs.nodejs_24 ]
