{ pkgs, ... }: [
  (pkgs.ruby.withPackages (gems: [
    gems.sinatra
    gems.thin
  ]))
]
