# 0.10.26, of March 2014.
{ pkgs-2014, ... }: [ pkgs-2014.nodejs ]
