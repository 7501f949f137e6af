{ pkgs, ... }: [
  pkgs.apacheHttpd
  pkgs.apacheHttpdPackages.mod_wsgi3
  (pkgs.python3.withPackages (packages: [ packages.web ]))
]
