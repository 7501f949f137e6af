# What servers take packages from: nixpkgs, and Erlang/OTP by release with its libraries; OTP 28
# stands at the top level too. default.nix adds nixpkgs of 2014 where that exists.
{ pkgs, pkgs-2022 }:
let
  # Its Erlang has no wx: the usual one brings GTK and WebKit, which no server shows.
  inherit (pkgs.beam_minimal) packages;
  of = beam: {
    inherit (beam) erlang;
    erlangWith = import ./erlang-with.nix {
      inherit pkgs;
      inherit (beam) erlang;
    };
    inherit (import ./erlang-libs.nix { inherit pkgs beam; }) erlangLibs unconfirmed;
  };
  otp28 = of packages.erlang_28;

  # For what a configure flag chooses when the emulator is built, and no flag of erl any more.
  rebuilt =
    flag:
    let
      erlang = otp28.erlang.overrideAttrs (old: {
        configureFlags = old.configureFlags ++ [ flag ];
      });
    in
    {
      inherit (otp28) erlangLibs;
      inherit erlang;
      erlangWith = import ./erlang-with.nix { inherit pkgs erlang; };
    };
in
otp28
// {
  inherit pkgs pkgs-2022;
  otp23 = of pkgs-2022.beam.packages.erlangR23;
  otp27 = of packages.erlang_27;
  otp29 = of packages.erlang_29;
  # poll(2) instead of epoll(7), since OTP 21.
  otp28-poll = rebuilt "--disable-kernel-poll";
  # An interpreter instead of the JIT, since OTP 24.
  otp28-nojit = rebuilt "--disable-jit";
}
