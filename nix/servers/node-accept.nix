# The build says that the two releases it is about are not here.
{ pkgs, ... }: [ pkgs.nodejs_24 ]
