# The toolchains of the posts' time, by name of their shell: { servers, programs } of each.
# Servers are those whose own files of servers/ need nothing newer.
{
  pkgs,
  clients,
  pkgs-2014,
}:
let
  inherit (pkgs) lib;
  offered = [
    "null"
    "otp-echo"
    "otp-http"
    "yaws"
    "yucan"
  ];

  of =
    release:
    let
      erlang = pkgs.symlinkJoin {
        name = "erlang-of-the-time";
        paths = [ release ];
        postBuild = ''
          rm "$out/bin/erl"
          substitute ${./era-erl} "$out/bin/erl" --subst-var-by erl ${release}/bin/erl
          chmod +x "$out/bin/erl"
        '';
      };
      toolchain = {
        inherit pkgs erlang;
        erlangWith = import ./erlang-with.nix { inherit pkgs erlang; };
        erlangLibs.yaws = pkgs-2014.yaws.override { erlang = release; };
      };
    in
    {
      servers = lib.getAttrs offered (import ./servers.nix { inherit pkgs toolchain clients; });
      # Only the programs: the set-up hooks of 2014 would reach into today's Python.
      programs = pkgs.buildEnv {
        name = "deathmatch-era";
        paths = [
          erlang
          pkgs-2014.nodejs
          pkgs-2014.python26
        ];
        pathsToLink = [ "/bin" ];
      };
    };
in
{
  era-R14B04 = of pkgs-2014.erlangR14B04;
  era-R15B03 = of pkgs-2014.erlangR15B03;
  # It has no name of its own there.
  era-R16B02 = of pkgs-2014.erlang;
}
