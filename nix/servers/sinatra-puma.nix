{ pkgs, ... }: [
  (pkgs.ruby.withPackages (gems: [
    gems.puma
    gems.sinatra
  ]))
]
